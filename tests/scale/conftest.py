import pytest
from tests.scale.cluster import Cluster

from telic.scale import Dask, Local


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    running.ready().close()
    yield running
    running.close()


@pytest.fixture(params=["local", "dask"])
def engine(request):
    if request.param == "local":
        yield Local(threads=2, memory="1GiB")
    else:
        running = request.getfixturevalue("cluster")
        with Dask(running.address) as found:
            yield found
