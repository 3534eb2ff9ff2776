"""M/M/1 and the storm in SimPy: `simpy_models.py mm1|storm tuned|guide SECONDS SEED` prints one line of JSON.

Tuned: the server is one process with a queue, woken by an event when it was idle. A request races its answer against a
timeout with `|`.

Guide: the server is a `Resource`, and whoever is served is a process that waits for it in `with server.request()`, as
in the examples "Bank Renege" and "Carwash" of the documentation. The client's `attempt | env.timeout(...)` with the
question which of the two is in the results is Bank Renege's, too. There the customer who leaves withdraws the request;
here the attempt must stay in the queue, so that it is a process of its own, for which the client waits as in "Waiting
for a Process" of the basic concepts.

The parameters and what counts as an event are those of `../limit.rs`.
"""

import json
import random
import sys
import time
from collections import deque

import simpy

MM1_RATE = 900.0  # 1/s
SERVICE_RATE = 1_000.0  # 1/s
STORM_RATE, SURGE_RATE = 600.0, 1_500.0  # 1/s
SURGE_FROM, SURGE_TO = 60.0, 70.0  # s
TIMEOUT = 1.0  # s
ATTEMPTS = 3
LATE = 300.0  # s


class World:
    """A server, tuned or of the guide, and what has come of it."""

    def __init__(self, seed):
        self.env = simpy.Environment()
        self.exponential = random.Random(seed).expovariate
        self.queue = deque()
        self.idle = None
        self.server = simpy.Resource(self.env, capacity=1)
        self.counts = dict.fromkeys(["events", "requests", "ok", "failed", "attempts"], 0)
        self.sojourn_s = 0.0

    def enqueue(self, entry):
        self.counts["attempts"] += 1
        self.queue.append(entry)
        if self.idle is not None:
            self.idle.succeed()
            self.idle = None

    def serve(self, answer):
        while True:
            if not self.queue:
                self.idle = self.env.event()
                yield self.idle
            yield self.env.timeout(self.exponential(SERVICE_RATE))
            self.counts["events"] += 1
            answer(self.queue.popleft())

    def be_served(self):
        """The guide's way to wait for the server and to be served."""
        self.counts["attempts"] += 1
        with self.server.request() as request:
            yield request
            yield self.env.timeout(self.exponential(SERVICE_RATE))
            self.counts["events"] += 1

    def next_request(self, now):
        """When the storm's next request comes after one at `now`."""
        while True:
            if now < SURGE_FROM:
                rate, holds_until = STORM_RATE, SURGE_FROM
            elif now < SURGE_TO:
                rate, holds_until = SURGE_RATE, SURGE_TO
            else:
                rate, holds_until = STORM_RATE, float("inf")
            following = now + self.exponential(rate)
            if following < holds_until:
                return following
            now = holds_until  # the exponential law has no memory

    def outcome(self, early):
        """The totals, and how much of them came after `early`."""
        late = {f"late_{name}": self.counts[name] - early[name] for name in ["events", "attempts", "ok"]}
        return self.counts | late | {"sojourn_s": self.sojourn_s}


def mm1(seed, seconds):
    world = World(seed)
    env, counts = world.env, world.counts

    def clients():
        while True:
            yield env.timeout(world.exponential(MM1_RATE))
            counts["events"] += 1
            counts["requests"] += 1
            world.enqueue(env.now)

    def answer(arrived):
        counts["ok"] += 1
        world.sojourn_s += env.now - arrived

    env.process(world.serve(answer))
    env.process(clients())
    env.run(until=seconds)
    return world.outcome(counts)


def storm(seed, seconds):
    world = World(seed)
    env, counts = world.env, world.counts

    def request():
        counts["events"] += 1
        counts["requests"] += 1
        for _ in range(ATTEMPTS):
            answer = env.event()
            world.enqueue(answer)
            yield answer | env.timeout(TIMEOUT)
            if answer.triggered:
                counts["ok"] += 1
                return
            counts["events"] += 1
        counts["failed"] += 1

    def clients():
        while True:
            yield env.timeout(world.next_request(env.now) - env.now)
            env.process(request())

    env.process(world.serve(lambda answer: answer.succeed()))
    env.process(clients())
    env.run(until=LATE)
    early = dict(counts)
    env.run(until=seconds)
    return world.outcome(early)


def mm1_guide(seed, seconds):
    world = World(seed)
    env, counts = world.env, world.counts

    def request():
        counts["events"] += 1
        counts["requests"] += 1
        arrived = env.now
        yield from world.be_served()
        counts["ok"] += 1
        world.sojourn_s += env.now - arrived

    def clients():
        while True:
            yield env.timeout(world.exponential(MM1_RATE))
            env.process(request())

    env.process(clients())
    env.run(until=seconds)
    return world.outcome(counts)


def storm_guide(seed, seconds):
    world = World(seed)
    env, counts = world.env, world.counts

    def request():
        counts["events"] += 1
        counts["requests"] += 1
        for _ in range(ATTEMPTS):
            attempt = env.process(world.be_served())
            results = yield attempt | env.timeout(TIMEOUT)
            if attempt in results:
                counts["ok"] += 1
                return
            counts["events"] += 1
        counts["failed"] += 1

    def clients():
        while True:
            yield env.timeout(world.next_request(env.now) - env.now)
            env.process(request())

    env.process(clients())
    env.run(until=LATE)
    early = dict(counts)
    env.run(until=seconds)
    return world.outcome(early)


def peak_mb():
    """The high-water mark of resident memory, where the system tells it."""
    try:
        with open("/proc/self/status") as status:
            kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return None
    return kib * 1024 / 1e6


def main():
    models = {"tuned": {"mm1": mm1, "storm": storm}, "guide": {"mm1": mm1_guide, "storm": storm_guide}}
    model, seconds, seed = models[sys.argv[2]][sys.argv[1]], float(sys.argv[3]), int(sys.argv[4])
    began = time.process_time()
    outcome = model(seed, seconds)
    cpu_s = time.process_time() - began
    print(json.dumps({"cpu_s": cpu_s, "peak_mb": peak_mb(), "outcomes": [outcome]}))


main()
