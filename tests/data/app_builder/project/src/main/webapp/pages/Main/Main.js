Page.onReady = function () {
    Page.Widgets.lblTitle.caption = "My vacations";
};

Page.btnRefreshClick = function ($event, widget) {
    Page.Variables.svcDepartments.invoke();
};
