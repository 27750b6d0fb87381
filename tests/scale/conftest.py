import os
import warnings
from pathlib import Path

import pytest
from tests.scale.cluster import Cluster, free_port

from telic.scale import Dask, Local, Ray


@pytest.fixture(scope="session")
def s3_settings():
    """Where the tests of object storage start their server, known before the cluster starts."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture(scope="session")
def cluster(s3_settings, tmp_path_factory):
    """One for all files: its processes take seconds to load what the tasks need."""
    running = Cluster(tmp_path_factory.mktemp("cluster"), settings=s3_settings)
    running.ready().close()
    yield running
    running.close()


@pytest.fixture(scope="module")
def ray():
    pytest.importorskip("ray", reason="Ray is optional and large: pip install ray")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray's own: sockets that it leaves open
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=os.pathsep)
        with Ray(memory="1GiB") as found:
            yield found


@pytest.fixture(params=["local", "dask", "ray"])
def engine(request):
    if request.param == "local":
        yield Local(threads=2, memory="1GiB")
    elif request.param == "ray":
        found = request.getfixturevalue("ray")
        found.reports.clear()
        found.memory = 2**30
        yield found
    else:
        running = request.getfixturevalue("cluster")
        with Dask(running.address) as found:
            yield found
