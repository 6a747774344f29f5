"""Tests that only systems like Linux and macOS can pass."""

import os
import sys

ON_WINDOWS = sys.platform == "win32" or "LAMA_TEST_WITHOUT_POSIX" in os.environ
