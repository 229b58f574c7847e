"""Reporters: one result in, text out.

Belongs here: laying out what `model.standings` or one verdict holds, for a terminal, a browser,
a Markdown panel or a program. Does not belong here: computing a statistic (`leaderboard`), or
writing a file (`adapters`, `cli`). A reporter formats the numbers it is given and says what is unknown,
partial or estimated; it never fills a gap. Every reporter is a pure function of its input:
no clock, no environment, no random ids.

`text` formats single values, `view` decides what a figure says and which footnote it carries;
`console`, `html`, `markdown` and `machine` are the reporters of standings, `breakdown` is that of
one verdict, `lines` what is printed to a terminal, and `markup`, `tables`, `scatter` and `method`
what the HTML page is made of. Names of models and contracts come from traces and are hostile
until a reporter has escaped them.
"""

REPORT_VERSION = "2"
"""Raised whenever the same standings could give another page; the page is then made again."""
