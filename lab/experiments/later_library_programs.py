"""More programs like those of `library_programs.py`, written after the rules that these led to, and before any was
recorded.

    python later_library_programs.py FOLDER [PROGRAM ...]
"""

import time

import numpy as np
import torch
from library_programs import STEPS, Perceptron, Program, Steps, main
from torch import nn


def logged(draw: np.random.Generator) -> Steps:
    """Read the loss in each third step, and do something else for 15 ms before one step of 15: these should be slow for
    a host that launches nothing, and no other.
    """
    training = Perceptron()
    batch = torch.rand(1024, 2048, device="cuda")
    for step in range(150):
        late = bool(draw.random() < 1 / 15)
        if late:
            time.sleep(0.015)
        loss = training.train(batch)
        if step % 3 == 2:
            loss.item()
        yield {"slow": late}


def larger_batches(draw: np.random.Generator) -> Steps:
    """Copy a batch from pinned memory at the begin of each step, 40 times as large in one of 15: these should be slow
    for copies.
    """
    training = Perceptron()
    pinned = torch.rand(40, 512, 2048, pin_memory=True)
    for _ in range(150):
        large = bool(draw.random() < 1 / 15)
        batch = pinned[: 40 if large else 1].cuda(non_blocking=True)
        training.train(batch[0])
        yield {"slow": large}


def paused(draw: np.random.Generator) -> Steps:
    """Synchronise and sleep between the forward and the backward pass of one step of 15: these should be slow for a
    device that waits between launches.
    """
    training = Perceptron()
    batch = torch.rand(1024, 2048, device="cuda")
    for _ in range(150):
        pause = bool(draw.random() < 1 / 15)
        loss = training.model(batch).square().mean()
        if pause:
            torch.cuda.synchronize()
            time.sleep(0.012)
        loss.backward()
        training.optimiser.step()
        training.optimiser.zero_grad(set_to_none=False)
        yield {"slow": pause}


def recompiled(draw: np.random.Generator) -> Steps:
    """Run a compiled network whose number of rows is new in a few steps, for each of which it is compiled again: these
    should be slow for a host that launches nothing, compilation where the trace tells.
    """
    torch._dynamo.reset()
    model = torch.compile(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()).cuda(), dynamic=False)
    batch = torch.rand(4096, 1024, device="cuda")
    model(batch)
    new = iter((3072, 2048, 1536, 1024, 512))
    steps = {int(index) for index in draw.choice(np.arange(20, 100), 5, replace=False)}
    for step in range(110):
        rows = next(new) if step in steps else 4096
        with torch.no_grad():
            model(batch[:rows]).sum().item()
        yield {"slow": step in steps}


def attention(draw: np.random.Generator) -> Steps:
    """Attend over sequences of 512 to 4,096 tokens, eight at once: the time goes with the square of the length, threads
    with the length. The kernel should be said to vary between its configurations.
    """
    for _ in range(STEPS):
        length = int(draw.integers(4, 33)) * 128
        query, key, value = torch.rand(3, 8, 16, length, 64, device="cuda", dtype=torch.bfloat16)
        torch.nn.functional.scaled_dot_product_attention(query, key, value)
        yield {"length": length}


def windows(draw: np.random.Generator) -> Steps:
    """Convolve 16 to 256 images, and add a bias to each: the number of images should be named, as grids or a size."""
    model = nn.Sequential(nn.Conv2d(64, 64, 3, 1, 1, bias=False), nn.SiLU()).cuda().bfloat16()
    for _ in range(STEPS):
        images = int(draw.integers(16, 257))
        with torch.no_grad():
            model(torch.rand(images, 64, 56, 56, device="cuda", dtype=torch.bfloat16))
        yield {"images": images}


def choices(draw: np.random.Generator) -> Steps:
    """Gather 10,000 to 2 million rows of 32 numbers from a table of 4 million: the indices should be named, as grids or
    as the size of that input, and not the size of all.
    """
    table = torch.rand(4_000_000, 32, device="cuda")
    for _ in range(STEPS):
        rows = int(draw.integers(10_000, 2_000_000))
        torch.index_select(table, 0, torch.randint(0, 4_000_000, (rows,), device="cuda"))
        yield {"rows": rows}


def sorted_rows(draw: np.random.Generator) -> Steps:
    """Take the softmax of rows of 1,000 to 60,000 numbers, 256 at once: the length should be named, as a size."""
    for _ in range(STEPS):
        length = int(draw.integers(1_000, 60_000))
        torch.softmax(torch.rand(256, length, device="cuda"), 1)
        yield {"length": length}


LATER: dict[str, Program] = {
    one.__name__: one for one in (logged, larger_batches, paused, recompiled, attention, windows, choices, sorted_rows)
}


if __name__ == "__main__":
    main(LATER)
