"""Paper 002: test AUC as published of VRSPAM and its rivals, Table 1; run again."""

from typing import Any

from telic.report import Report
from telic.study.auc_papers.side_by_side import PublishedTable, parse, study_of
from telic.study.steps import Steps

TABLES = (
    PublishedTable(
        "VRSPAM and its rivals",
        parse(
            ("VRSPAM-L2", "VRSPAM-NET", "SPAM-L2", "SPAM-NET", "SOLAM", "OPAUC"),
            """
diabetes .8299±.0323 .8305±.0319 .8272±.0277 .8085±.0431 .8128±.0304 .8309±.0350
german   .7902±.0386 .7845±.0398 .7942±.0388 .7937±.0386 .7778±.0373 .7978±.0347
splice   .9640±.0156 .9699±.0139 .9263±.0091 .9267±.0090 .9246±.0087 .9232±.0099
usps     .8552±.0060 .8549±.0059 .8542±.0388 .8537±.0386 .8395±.0061 .8114±.0065
a9a      .9003±.0045 .8981±.0046 .8998±.0046 .8980±.0047 .8966±.0043 .9002±.0047
w8a      .9876±.0008 .9787±.0013 .9682±.0020 .9604±.0020 .9817±.0015 .9633±.0035
mnist    .9465±.0014 .9351±.0014 .9254±.0025 .9132±.0026 .9118±.0029 .9242±.0021
acoustic .8093±.0033 .8052±.0330 .8120±.0030 .8109±.0028 .8099±.0036 .8192±.0032
ijcnn1   .9750±.0010 .9745±.0020 .9174±.0024 .9155±.0024 .9129±.0030 .9269±.0021
""",
        ),
    ),
)


def study(steps: Steps, **settings: Any) -> Report:
    """Run the paper's tables again; the settings are those of `study_of`."""
    return study_of("002", TABLES, steps, **settings)
