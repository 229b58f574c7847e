Page.onReady = function () {
    Page.Widgets.txtUser.focus();
};

Page.frmLoginSubmit = function ($event, widget) {
    Page.Variables.svcLogin.setInput("j_username", Page.Widgets.txtUser.datavalue);
    Page.Variables.svcLogin.setInput("j_password", Page.Widgets.txtPassword.datavalue);
    Page.Variables.svcLogin.invoke();
};
