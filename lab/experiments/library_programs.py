"""Programs of well-known libraries whose steps meet what is drawn at random, traced by PyTorch's profiler (Kineto). Each
says what should be said of it; all were written before any was recorded.

    python library_programs.py FOLDER [PROGRAM ...]

writes `NAME.json.gz`, the trace, and `NAME.steps.json`: what was drawn for each step, in their order.
"""

import gc
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

Steps = Iterator[dict]
Program = Callable[[np.random.Generator], Steps]
STEPS = 240


def graph_network(draw: np.random.Generator) -> Steps:
    """Train a graph network on graphs of as many nodes and 100,000 to 400,000 edges: the edges should be named, as the
    sizes of what is gathered and scattered.
    """
    from torch_geometric.nn import GCNConv

    layers = [GCNConv(64, 64).cuda(), GCNConv(64, 64).cuda()]
    features = torch.rand(20_000, 64, device="cuda")
    optimiser = torch.optim.SGD([parameter for layer in layers for parameter in layer.parameters()], lr=1e-3)
    for _ in range(STEPS):
        edges = int(draw.integers(100_000, 400_000))
        index = torch.randint(0, 20_000, (2, edges), device="cuda")
        layers[1](layers[0](features, index).relu(), index).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        yield {"edges": edges}


def compiled(draw: np.random.Generator) -> Steps:
    """Run a compiled network on 2,000 to 16,000 rows: the rows should be named, as grids or sizes."""
    layers = [nn.Linear(512, 2048), nn.GELU(), nn.LayerNorm(2048), nn.Linear(2048, 512), nn.Softmax(1)]
    model = torch.compile(nn.Sequential(*layers).cuda().bfloat16(), dynamic=True)
    for _ in range(STEPS):
        rows = int(draw.integers(2_000, 16_000))
        with torch.no_grad():
            model(torch.rand(rows, 512, device="cuda", dtype=torch.bfloat16))
        yield {"rows": rows}


def recommender(draw: np.random.Generator) -> Steps:
    """Sum 5 to 80 rows of a table for each of 8,192 users, from 20,000 rows that stay in the cache or from all 8 million:
    the number of rows (the size of the indices) should be named; the choice of rows is in no column.
    """
    table = nn.EmbeddingBag(8_000_000, 64, mode="sum").cuda()
    for _ in range(STEPS):
        length = int(draw.integers(5, 81))
        popular = bool(draw.integers(2))
        rows = torch.randint(0, 20_000 if popular else 8_000_000, (8192 * length,), device="cuda")
        offsets = torch.arange(0, 8192 * length, length, device="cuda")
        with torch.no_grad():
            table(rows, offsets)
        yield {"length": length, "popular": popular}


def detection(draw: np.random.Generator) -> Steps:
    """Cut 400 to 4,000 regions out of features and drop those that overlap: their number should be named, as a size."""
    from torchvision.ops import nms, roi_align

    features = torch.rand(1, 256, 200, 200, device="cuda")
    for _ in range(STEPS):
        regions = int(draw.integers(400, 4000))
        corners = torch.rand(regions, 2, device="cuda") * 150
        boxes = torch.cat([corners, corners + 10 + torch.rand(regions, 2, device="cuda") * 39], 1)
        roi_align(features, [boxes], 7)
        nms(boxes, torch.rand(regions, device="cuda"), 0.5)
        yield {"regions": regions}


def sparse(draw: np.random.Generator) -> Steps:
    """Multiply a sparse matrix of one shape and 1 to 6 million values by a dense one: the number of values should be
    named where a column holds it, else nothing.
    """
    dense = torch.rand(100_000, 32, device="cuda")
    for _ in range(STEPS):
        each = int(draw.integers(10, 61))
        rows = torch.arange(0, 100_000 * each + 1, each, device="cuda")
        columns = torch.randint(0, 100_000, (100_000 * each,), device="cuda")
        values = torch.rand(100_000 * each, device="cuda")
        matrix = torch.sparse_csr_tensor(rows, columns, values, (100_000, 100_000), check_invariants=False)
        matrix @ dense
        yield {"each": each}


def experts(draw: np.random.Generator) -> Steps:
    """Each of eight experts multiplies its share of 8,192 tokens: the tokens of each should be named, as a size."""
    weights = torch.rand(8, 1024, 4096, device="cuda", dtype=torch.bfloat16)
    tokens = torch.rand(8192, 1024, device="cuda", dtype=torch.bfloat16)
    for _ in range(STEPS):
        shares = draw.dirichlet(np.full(8, 2.0))
        counts = np.maximum(1, (8192 * shares).astype(int))
        first = 0
        for expert, count in enumerate(counts):
            torch.nn.functional.gelu(tokens[first : first + count] @ weights[expert])
            first += int(count)
        yield {"tokens": [int(rows) for rows in counts]}


def text(draw: np.random.Generator) -> Steps:
    """Generate 12 tokens after prompts of 64 to 900, eight at once, with transformers: the lengths should be named."""
    from transformers import GPT2Config, GPT2LMHeadModel

    small = GPT2Config(n_layer=2, n_embd=512, n_head=8, vocab_size=4096, bos_token_id=0, eos_token_id=None)
    model = GPT2LMHeadModel(small).cuda().bfloat16().eval()
    for _ in range(60):
        length = int(draw.integers(64, 900))
        prompt = torch.randint(1, 4096, (8, length), device="cuda")
        with torch.no_grad():
            mask = torch.ones_like(prompt)
            model.generate(prompt, attention_mask=mask, max_new_tokens=12, do_sample=False, pad_token_id=0)
        yield {"length": length}


def scales(draw: np.random.Generator) -> Steps:
    """Train a convolutional network on images of one of five sizes: the size should be named."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64)
    )
    model = model.cuda().to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        size = int(draw.choice([128, 160, 192, 224, 256]))
        images = torch.rand(64, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16):
            model(images).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        yield {"size": size}


class Perceptron:
    """The training of a network of a few milliseconds a step."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(2048, 8192), nn.ReLU(), nn.Linear(8192, 2048)).cuda()
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def train(self, batch: torch.Tensor) -> torch.Tensor:
        """Make one step."""
        loss = self.model(batch).square().mean()
        loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=False)
        return loss


def saved(draw: np.random.Generator) -> Steps:
    """Save the weights in one step of 20: these steps should be slow for copies to the host."""
    training = Perceptron()
    batch = torch.rand(4096, 2048, device="cuda")
    for _ in range(120):
        save = bool(draw.random() < 0.05)
        training.train(batch)
        if save:
            [parameter.detach().cpu() for parameter in training.model.parameters()]
        yield {"slow": save}


def loaded(draw: np.random.Generator) -> Steps:
    """Take batches from a loader whose worker needs 40 ms for one of 15: these steps should be slow for the loader."""
    late = draw.random(120) < 1 / 15
    training = Perceptron()
    batches = iter(torch.utils.data.DataLoader(Late(late), batch_size=None, num_workers=1, prefetch_factor=2))
    for slow in late:
        training.train(next(batches).cuda().expand(4096, 2048)).item()
        yield {"slow": bool(slow)}


class Late(torch.utils.data.Dataset):
    """Rows of which some come late."""

    def __init__(self, late: np.ndarray) -> None:
        self.late = late

    def __len__(self) -> int:
        return len(self.late)

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.04 if self.late[index] else 0.001)
        return torch.rand(2048)


def allocated(draw: np.random.Generator) -> Steps:
    """Give the memory back to the driver before one step of 15: these steps should be slow for its allocation."""
    training = Perceptron()
    batch = torch.rand(4096, 2048, device="cuda")
    for _ in range(120):
        empty = bool(draw.random() < 1 / 15)
        if empty:
            torch.cuda.empty_cache()
        training.train(batch)
        yield {"slow": empty}


def collected(draw: np.random.Generator) -> Steps:
    """Collect garbage in one step of 15: these steps should be slow for a host that launches nothing."""
    training = Perceptron()
    batch = torch.rand(256, 2048, device="cuda")
    kept = [[number] for number in range(1_500_000)]
    gc.disable()
    for _ in range(120):
        collect = bool(draw.random() < 1 / 15)
        if collect:
            gc.collect()
        training.train(batch)
        yield {"slow": collect}
    gc.enable()
    kept.clear()


def evaluated(draw: np.random.Generator) -> Steps:
    """Evaluate a second batch of four times the rows in one step of 12: these steps should be slow for more kernels."""
    training = Perceptron()
    batch = torch.rand(2048, 2048, device="cuda")
    large = torch.rand(16384, 2048, device="cuda")
    for _ in range(120):
        evaluate = bool(draw.random() < 1 / 12)
        training.train(batch)
        if evaluate:
            with torch.no_grad():
                training.model(large).square().mean()
        yield {"slow": evaluate}


def read_back(draw: np.random.Generator) -> Steps:
    """Print the loss in half of the steps: the device should be idle for the host's waiting in these."""
    training = Perceptron()
    batch = torch.rand(512, 2048, device="cuda")
    for _ in range(200):
        printed = bool(draw.integers(2))
        loss = training.train(batch)
        if printed:
            loss.item()
        yield {"printed": printed}


PROGRAMS: dict[str, Program] = {
    one.__name__: one
    for one in (
        graph_network,
        recommender,
        detection,
        sparse,
        experts,
        text,
        scales,
        saved,
        loaded,
        allocated,
        collected,
        evaluated,
        read_back,
        compiled,
    )
}


def record(name: str, program: Program, folder: Path) -> None:
    """Run a program once unobserved, for five steps, and once under the profiler, and write both files."""
    for _, _ in zip(program(np.random.default_rng(1)), range(5), strict=False):
        torch.cuda.synchronize()
    drawn = []
    every_step = schedule(wait=0, warmup=0, active=10**6)
    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=kinds, record_shapes=True, schedule=every_step) as profiler:
        for step in program(np.random.default_rng(np.frombuffer(name.encode(), np.uint8))):
            drawn.append(step)
            profiler.step()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(folder / f"{name}.json.gz"))
    (folder / f"{name}.steps.json").write_text(json.dumps(drawn))


def main(programs: Mapping[str, Program]) -> None:
    """Record those of the programs that the command line names, or all."""
    folder, *names = sys.argv[1:]
    for name in names or programs:
        began = time.perf_counter()
        try:
            record(name, programs[name], Path(folder))
        except Exception:  # one that fails must not lose the others
            traceback.print_exc()
        print(name, f"{time.perf_counter() - began:.1f} s", flush=True)
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(PROGRAMS)
