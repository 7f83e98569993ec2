"""All cases of this folder: each file that is imported here adds its own to CASES."""
import stores_chunks  # noqa: F401
import stores_codecs  # noqa: F401
import stores_groups  # noqa: F401
import stores_metadata  # noqa: F401
import stores_objects  # noqa: F401
import stores_shards  # noqa: F401
import stores_v2  # noqa: F401
from stores import CASES  # noqa: F401
