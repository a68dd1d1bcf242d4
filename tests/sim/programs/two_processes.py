"""The checks of several programs in one start: starting takes longer than checking."""

from __future__ import annotations

import checks
import data_parallel
import distributed
import model_parallel
from group import whole_program

if __name__ == "__main__":
    with whole_program():
        checks.run({**vars(distributed), **vars(data_parallel), **vars(model_parallel)})
