"""What document 002 says of VRSPAM and its rivals, and how it is tried."""

from telic.study.auc_papers.claims import above, auc, near, printed, reachable
from telic.study.auc_papers.paper002 import TABLES

(TABLE,) = TABLES
SOURCE = "002: Table 1"
CLAIMS = (
    near(SOURCE, TABLE),
    reachable(SOURCE, TABLE),
    above(SOURCE, TABLE, "VRSPAM-L2", "SPAM-L2"),
    above(SOURCE, TABLE, "VRSPAM-L2", "SOLAM"),
    above(SOURCE, TABLE, "VRSPAM-L2", "OPAUC"),
    auc(SOURCE, TABLE, "ijcnn1", "VRSPAM-L2"),
)
PRINTED = (printed(SOURCE, TABLE),)
