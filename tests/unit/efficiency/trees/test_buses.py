"""The bus of a device by its name: generations that share a number are told apart."""

import pytest

from causeway.efficiency.trees.copy_rates import bus_of


@pytest.mark.parametrize(
    ("device", "generation"),
    [
        ("Quadro RTX 5000", 3),
        ("NVIDIA RTX 5000 Ada Generation", 4),
        ("NVIDIA GeForce RTX 5090", 5),
        ("Quadro RTX 4000", 3),
        ("NVIDIA RTX A4000", 4),
        ("NVIDIA GeForce RTX 4090", 4),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 5),
        ("NVIDIA GeForce RTX 2080 Ti", 3),
        ("NVIDIA A10G", 4),
        ("AMD Instinct MI300X", 5),
        ("AMD Instinct MI300A", None),
        ("NVIDIA RTX 9999", None),
    ],
)
def test_the_generation_of_a_bus_is_that_of_the_card(device, generation):
    rates = {3: 15.75, 4: 31.5, 5: 63.0}
    found = bus_of(device)
    assert found == (None if generation is None else (rates[generation], f"PCIe {generation}.0 x16"))
