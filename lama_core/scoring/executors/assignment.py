"""Assign parts to workers so that workers load few models and finish at about the same time.

A worker first gets the parts of its loaded model, in descending order of cost. When none is left,
it switches to the model with the highest remaining cost per worker, including this worker.
"""

from collections.abc import Hashable, Sequence

from lama_core.scoring.executors import Job, Task


class Unassigned:
    """The parts that no worker has yet. Each worker has a number."""

    def __init__(self, jobs: Sequence[Job], tasks: Sequence[Task]) -> None:
        self._jobs = jobs
        # Model's key -> its parts in ascending order of cost, and the sum of their costs.
        self._parts: dict[Hashable, list[Task]] = {self._key(task): [] for task in tasks}
        self._costs = dict.fromkeys(self._parts, 0)
        self._loaded: dict[int, Hashable] = {}  # worker -> key of its model
        # In the order of assignment: most costly first; of equal costs, the earlier part first.
        self.give_back(sorted(tasks, key=self.cost, reverse=True))

    def cost(self, task: Task) -> int:
        """Return the cost of a part, at least 1."""
        return max(self._jobs[task.job].work.parts[task.part].cost, 1)

    def take(self, worker: int) -> Task | None:
        """Return the next part for a worker; None if all are assigned."""
        if self.is_empty:
            return None
        key = self._loaded.get(worker)
        if not self._costs.get(key, 0):
            self.remove_worker(worker)
            loaded = list(self._loaded.values())
            key = max(self._costs, key=lambda key: self._costs[key] / (1 + loaded.count(key)))
        self._loaded[worker] = key
        task = self._parts[key].pop()
        self._costs[key] -= self.cost(task)
        return task

    def give_back(self, tasks: Sequence[Task]) -> None:
        """Add parts; the first is assigned next."""
        for task in reversed(tasks):
            self._parts[self._key(task)].append(task)
            self._costs[self._key(task)] += self.cost(task)

    @property
    def is_empty(self) -> bool:
        """Whether all parts are assigned."""
        return not any(self._costs.values())

    def remove_worker(self, worker: int) -> None:
        """Forget which model a worker has loaded, because it died or switches."""
        self._loaded.pop(worker, None)

    def _key(self, task: Task) -> Hashable:
        return self._jobs[task.job].key
