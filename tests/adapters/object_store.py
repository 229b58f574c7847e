"""An object store on this machine, for tests."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import s3fs
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


@contextmanager
def s3_server() -> Iterator[str]:
    """Serve S3 with a `bucket`, to which the environment leads; yields its address."""
    # One request at a time: the simulated server compares and swaps in two steps, the real one
    # in one.
    app = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, app, threaded=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    old = dict(os.environ)
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": address,
    }
    # Filesystems are remembered, and the environment that they were made in is not looked at.
    s3fs.S3FileSystem.clear_instance_cache()
    # What it stores is the process's: an earlier server's bucket is still there.
    with suppress(FileExistsError):
        s3fs.S3FileSystem(endpoint_url=address).mkdir("bucket")
    yield address
    s3fs.S3FileSystem.clear_instance_cache()
    os.environ.clear()
    os.environ |= old
    server.shutdown()
    thread.join(10)
    server.server_close()
