"""Scoring on a Ray cluster: each worker opens one model at a time, and scores whole parts.

A worker is one graphics card, where the cluster has some and LAMA_DEVICE isn't `cpu`, else two
processors. It has few parts at a time, and their rows come back as they are ready. The parts of a
worker that dies, alone or with its node, go to the others, and another worker begins where there is
room. Parts that are written down are never asked for again. Ray moves objects between its processes
in its own way; nothing of that is kept in a file of ours.

Ray is an optional extra (`pip install ray`); RAY_ADDRESS names a running cluster, else one is begun
on this machine. Weights and data must be on every node, under the same names: docs/scale.md.
"""

import itertools
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import ray

from lama_core.errors import UserError
from lama_core.models.devices import VARIABLE as DEVICE
from lama_core.models.devices import wanted_device
from lama_core.scoring.executors import Job, Task, Tick
from lama_core.scoring.executors.assignment import Deal

AT_ONCE = 2  # parts that a worker has: while the rows of one travel, it is at the next
PROCESSORS = 2  # of a worker, where nodes have as many
DEATHS = 3  # workers that a part is given to, if all of them die over it
ANSWERED = 10.0  # seconds that a cluster may take to answer
ASKED = 1.0  # seconds after which a user's wish to stop is heard
PATIENCE = 300.0  # seconds that nothing moves: no worker at work, and no room for one


class RayExecutor:
    """Scores the parts on the workers of a Ray cluster.

    n_workers: at most so many; None is as many as the cluster has room for.
    """

    here = False

    def __init__(self, n_workers: int | None = None) -> None:
        self.n_workers = n_workers

    def tables(
        self, jobs: Sequence[Job], tasks: Sequence[Task], tick: Tick
    ) -> Iterator[tuple[Task, pa.Table, str]]:
        """Each task with its rows and the worker's device, as they are handed back.

        Raises UserError for what a worker can't open or score, for a part over which several
        workers died, and when the cluster has no room.
        """
        crew = _Crew(jobs, tasks, self.n_workers)
        try:
            yield from crew.work(tick)
        finally:
            crew.dismiss()


@dataclass(frozen=True, slots=True)
class _Room:
    """What a worker takes of a node, and how many workers the cluster holds."""

    processors: int
    cards: int
    n_workers: int


def _room() -> _Room:
    """The room in the cluster as it is now."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    cards = sum(int(node.get("GPU", 0)) for node in nodes)
    if cards and _device() != "cpu":
        return _Room(1, 1, cards)
    counts = [int(node["CPU"]) for node in nodes if node.get("CPU", 0) >= 1]
    processors = min([PROCESSORS, *counts])
    return _Room(processors, 0, max(1, sum(count // processors for count in counts)))


def _device() -> str:
    """A worker's LAMA_DEVICE: this process's choice; a worker sees one card, which is the first."""
    return "cuda" if wanted_device().startswith("cuda") else wanted_device()


def _connect() -> None:
    """Be part of the cluster of RAY_ADDRESS, or begin one here."""
    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=ANSWERED).close()
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    except (OSError, ValueError) as error:
        raise UserError(
            f"No Ray cluster answers at RAY_ADDRESS={address[:80]!r}: begin one with `ray start "
            "--head`, or unset it, and one is begun on this machine."
        ) from error


class _Crew:
    """The workers, and what each of them has in hand."""

    def __init__(self, jobs: Sequence[Job], tasks: Sequence[Task], n_workers: int | None) -> None:
        _connect()
        self._deal = Deal(jobs, tasks)
        self._jobs = jobs
        self._room = _room()
        self._numbers = itertools.count()
        self._actors: dict[int, Any] = {}
        self._idle: set[int] = set()
        self._begun: set[int] = set()
        # What is awaited: a worker's part, or, None, that it has begun.
        self._awaited: dict[Any, tuple[int, Task | None]] = {}
        self._deaths: Counter[Task | None] = Counter()
        # In a list the references reach a worker as they are, and it takes what it needs.
        self._works = [ray.put(job.work) for job in jobs]
        for _ in range(min(len(tasks), n_workers or self._room.n_workers)):
            self._hire()

    def work(self, tick: Tick) -> Iterator[tuple[Task, pa.Table, str]]:
        """Each task with its rows and the device."""
        moved = time.monotonic()
        # A worker for whom there is no room yet has no part: nobody waits for it at the end.
        while not self._is_done():
            ready, _ = ray.wait(list(self._awaited), num_returns=1, timeout=ASKED)
            tick(0)
            if ready:
                moved = time.monotonic()
                yield from self._receive(ready[0])
            elif not self._in_hand() and time.monotonic() - moved > PATIENCE:
                raise UserError(
                    f"The Ray cluster has had no room for a worker for {PATIENCE:.0f} seconds "
                    f"({self._needs()}): `ray status` shows what it has. What was scored is kept."
                )

    def _is_done(self) -> bool:
        return self._deal.is_empty and not self._in_hand()

    def _in_hand(self) -> bool:
        return any(task is not None for _, task in self._awaited.values())

    def _needs(self) -> str:
        cards = f", {self._room.cards} GPU" if self._room.cards else ""
        return f"a worker takes {self._room.processors} CPU{cards}"

    def _hire(self) -> None:
        """Ask for one worker more; it is given parts when it has begun."""
        remote: Any = ray.remote(_Worker).options(
            num_cpus=self._room.processors,
            num_gpus=self._room.cards,
            max_restarts=0,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": {DEVICE: _device()}},
        )
        number = next(self._numbers)
        keys = [job.key for job in self._jobs]
        actor = remote.remote(self._works, keys, [job.reopen for job in self._jobs])
        self._actors[number] = actor
        self._awaited[actor.begin.remote()] = number, None

    def _give(self, number: int) -> None:
        """A worker's next part; there is none while others have the last."""
        task = self._deal.take(number)
        if task is None:
            self._idle.add(number)
        else:
            self._idle.discard(number)
            reference = self._actors[number].score.remote(task.job, task.part)
            self._awaited[reference] = number, task

    def _receive(self, reference: Any) -> Iterator[tuple[Task, pa.Table, str]]:
        """What has come of a worker: rows, that it has begun, or that it is no more."""
        number, task = self._awaited.pop(reference)
        try:
            answer = ray.get(reference)
        except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
            self._bury(number, task, error)
            return
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise UserError(str(error.cause)) from error
            raise
        if task is None:
            self._begun.add(number)
            for _ in range(AT_ONCE):
                self._give(number)
            return
        self._deaths[None] = 0  # the cluster is at work: those that died before count no more
        self._give(number)
        yield task, *answer

    def _bury(self, number: int, task: Task | None, error: Exception) -> None:
        """Give the parts of a dead worker to others, and ask for another worker.

        Only the part that it was at counts the death; an idle worker was at none. Raises UserError
        for a part over which too many died, or if workers die before they begin.
        """
        lost = [(ref, at) for ref, (whose, at) in self._awaited.items() if whose == number]
        for reference, _ in lost:
            del self._awaited[reference]
        ray.kill(self._actors.pop(number))
        self._idle.discard(number)
        self._deal.leave(number)
        self._deal.give_back([one for one in (task, *(at for _, at in lost)) if one is not None])
        idle = task is None and number in self._begun
        self._deaths[task] += 0 if idle else 1
        if self._deaths[task] >= DEATHS:
            said = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
            at = "before they began" if task is None else f"at part {self._name(task)}"
            raise UserError(
                f"{DEATHS} workers of the Ray cluster died {at} ({said[:200]}): see that every "
                "node has this project, its packages and the memory that the model takes. What "
                "was scored is kept."
            ) from error
        for waiting in sorted(self._idle):  # they may be dead as well: only who answers is given
            self._awaited[self._actors[waiting].begin.remote()] = waiting, None
        self._idle.clear()
        if not self._deal.is_empty:
            self._hire()

    def _name(self, task: Task) -> str:
        return self._jobs[task.job].work.parts[task.part].name

    def dismiss(self) -> None:
        """End the workers."""
        for actor in self._actors.values():
            ray.kill(actor)


class _Worker:
    """One process of the cluster: one model open at a time, and the works that ask it."""

    def __init__(
        self,
        works: Sequence[Any],
        keys: Sequence[Hashable],
        reopen: Sequence[Callable[[], Any]],
    ) -> None:
        self._references = works
        self._keys = keys
        self._reopen = reopen
        self._works: dict[int, Any] = {}
        self._open: tuple[Hashable, Any] | None = None

    def begin(self) -> None:
        """Say that it is there."""

    def score(self, job: int, part: int) -> tuple[pa.Table, str]:
        """The rows of one part, and the device. Raises UserError for what this node can't open."""
        if self._open is None or self._open[0] != self._keys[job]:
            self._open = None  # and its memory is free before the next is loaded
            self._works.clear()
            try:
                self._open = self._keys[job], self._reopen[job]()
            except UserError as error:
                raise UserError(
                    f"On the node {ray.util.get_node_ip_address()}: {error} Every node needs the "
                    "weights and the data of a run, or a disk with them that all share."
                ) from error
        if job not in self._works:
            self._works[job] = ray.get(self._references[job])
        scorer = self._open[1]
        return self._works[job].score(scorer, part, lambda _: None), scorer.device
