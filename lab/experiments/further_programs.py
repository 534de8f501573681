"""Programs that no rule of the graph or the replay was made on, as they are and with one change."""

import torch
from kernels import Kernels
from programs import MIB, Encoder, Pair, Perceptron, WithKernel, graph_of
from torch import nn


def encoder_copies() -> Pair:
    """An encoder's training that reads its loss at each step, with float32 batches from pageable memory."""
    net = Encoder()
    batch = net.resident.float().cpu()
    return Pair(
        lambda: net.train(batch.cuda().bfloat16()).item(), lambda: net.train(net.resident).item(), ("copies_free",), 12
    )


def encoder_host() -> Pair:
    """A small encoder's training, whose host is late; then its CUDA graph."""
    net = Encoder(width=256, layers=4, rows=8, length=128)
    return Pair(
        lambda: net.train(net.resident),
        graph_of(lambda: net.train(net.resident)),
        ("host_free",),
        8,
    )


def decoder_host() -> Pair:
    """Tokens of one sentence, one by one, each read by the host; then a CUDA graph without reading."""
    net = Encoder(width=1024, layers=8, rows=1, length=1)
    head = nn.Linear(1024, 32000, bias=False).cuda().bfloat16()

    @torch.no_grad()
    def token() -> torch.Tensor:
        return head(net.model(net.resident)).argmax()

    net.model.eval()
    return Pair(lambda: token().item(), graph_of(token), ("host_free",), 8)


def convolutions_copies() -> Pair:
    """The same without decoding: images from pinned memory, then on the device."""
    from torchvision.models import resnet50

    model = resnet50().cuda().to(memory_format=torch.channels_last)
    images = torch.rand(256, 3, 224, 224).pin_memory()
    resident = images.cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step(batch: torch.Tensor) -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(batch).float().square().mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()

    return Pair(lambda: step(images.to("cuda", non_blocking=True)), lambda: step(resident), ("copies_free",), 6)


def read_loss() -> Pair:
    """A step of training with a kernel of ours that reads its loss; the kernel takes a tenth less."""
    net = Perceptron(4096, 1024)
    program = WithKernel(Kernels(), rounds=200000)

    def step(share: float) -> None:
        program.own(share)
        net.train(net.resident).item()

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",), 20)


def many_small_copies() -> Pair:
    """Sixteen tensors of 1 MiB from pageable memory before each step; then they lie on the device."""
    net = Perceptron(4096, 1024)
    parts = [part.cpu().clone() for part in net.resident.chunk(16)]

    def before() -> None:
        net.train(torch.cat([part.cuda() for part in parts]))

    resident = [part.cuda() for part in parts]
    return Pair(before, lambda: net.train(torch.cat(resident)), ("copies_free",), 20)


def results_beside() -> Pair:
    """Results of 64 MiB are copied to pinned memory on a stream of their own, which each step waits for once more."""
    net = Perceptron(8192, 1024)
    results = torch.rand(64 * MIB // 4, device="cuda")
    pinned = torch.empty(64 * MIB // 4).pin_memory()
    stream = torch.cuda.Stream()

    def before() -> None:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            pinned.copy_(results, non_blocking=True)
        net.train(net.resident)
        torch.cuda.current_stream().wait_stream(stream)

    return Pair(before, lambda: net.train(net.resident), ("copies_free",), 20)


def pageable_results() -> Pair:
    """Results of 4 MiB are copied into a pageable buffer after each step, which blocks; then they are not."""
    net = Perceptron(8192, 2048)
    buffer = torch.empty(MIB)

    def before() -> None:
        net.train(net.resident)
        buffer.copy_(net.resident.view(-1)[:MIB])

    return Pair(before, lambda: net.train(net.resident), ("copies_free",), 20)


def three_streams() -> Pair:
    """Three streams whose kernels do not fit on the device at once; the longest kernel takes a tenth less."""
    program = WithKernel(Kernels(), rounds=40000)
    products = WithKernel(Kernels(), size=3072)
    streams = [torch.cuda.Stream() for _ in range(2)]

    def step(share: float) -> None:
        for stream in streams:
            stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(streams[0]):
            for _ in range(4):
                program.own(share)
        with torch.cuda.stream(streams[1]):
            for _ in range(8):
                program.kernels.launch("neighbour", program.kernels.sums, 9000)
        products.products(12)
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",), 15)


def training_faster_kernel() -> Pair:
    """An encoder's training with a kernel of ours between its halves and copies of its batches; a tenth less of it."""
    net = Encoder(width=512, layers=2, rows=32, length=256)
    program = WithKernel(Kernels(), rounds=600000)
    batch = net.resident.cpu().pin_memory()

    def step(share: float) -> None:
        program.own(share)
        net.train(batch.to("cuda", non_blocking=True)).item()

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",), 10)


def four_streams() -> Pair:
    """Kernels of four streams, of which two read memory and two compute; the longest takes a tenth less."""
    program = WithKernel(Kernels(), rounds=50000)
    values = torch.rand(64 * MIB, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(3)]

    def step(share: float) -> None:
        for stream in streams:
            stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(streams[0]):
            for _ in range(5):
                program.own(share)
        with torch.cuda.stream(streams[1]):
            for _ in range(6):
                program.kernels.read(values)
        with torch.cuda.stream(streams[2]):
            for _ in range(6):
                program.kernels.launch("neighbour", program.kernels.sums, 6000)
        for _ in range(10):
            program.kernels.read(values, "read_others")
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",), 15)


def small_beside_large() -> Pair:
    """Many small products of matrices beside long kernels of another stream, which take a tenth less."""
    program = WithKernel(Kernels(), size=768, rounds=80000)
    stream = torch.cuda.Stream()

    def step(share: float) -> None:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                program.own(share)
        program.products(60)
        torch.cuda.current_stream().wait_stream(stream)

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",), 12)


def turns() -> Pair:
    """Two streams take turns, by events; the kernel of one takes a tenth less."""
    program = WithKernel(Kernels(), size=3072, rounds=40000)
    stream = torch.cuda.Stream()

    def step(share: float) -> None:
        for _ in range(3):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                program.own(share)
            torch.cuda.current_stream().wait_stream(stream)
            program.products(3)

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",), 20)


def saved_weights() -> Pair:
    """Each step copies its largest weights, 64 MiB, into a pageable buffer; then it does not."""
    net = Perceptron(2048, 4096)
    weights = net.model[0].weight
    buffer = torch.empty(weights.shape)

    def before() -> None:
        net.train(net.resident)
        buffer.copy_(weights.detach())

    return Pair(before, lambda: net.train(net.resident), ("copies_free",), 15)


def images() -> Pair:
    """A small convolutional network's training on images of 24 MiB from pageable memory, then on the device."""
    layers = [nn.Conv2d(3, 64, 7, 2), nn.ReLU(), nn.Conv2d(64, 128, 3, 2), nn.ReLU(), nn.Conv2d(128, 128, 3, 2)]
    model = nn.Sequential(*layers).cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)
    pageable = torch.rand(42, 3, 224, 224)
    resident = pageable.cuda()

    def step(batch: torch.Tensor) -> None:
        model(batch).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=False)

    return Pair(lambda: step(pageable.cuda()), lambda: step(resident), ("copies_free",), 15)


def small_training() -> Pair:
    """A small perceptron's training, whose host is late; then its CUDA graph."""
    net = Perceptron(256, 512)
    return Pair(lambda: net.train(net.resident), graph_of(lambda: net.train(net.resident)), ("host_free",), 12)


def classify() -> Pair:
    """A residual network classifies one image at a time; then its CUDA graph does."""
    from torchvision.models import resnet18

    model = resnet18().cuda().eval()
    image = torch.rand(1, 3, 224, 224, device="cuda")

    @torch.no_grad()
    def step() -> torch.Tensor:
        return model(image).argmax()

    return Pair(step, graph_of(step), ("host_free",), 12)


UNSEEN = (
    encoder_copies,
    encoder_host,
    decoder_host,
    convolutions_copies,
    read_loss,
    many_small_copies,
    results_beside,
    pageable_results,
    three_streams,
    training_faster_kernel,
)
JUDGES = (four_streams, small_beside_large, turns, saved_weights, images, small_training, classify)
"""Recorded when all rules stood."""
