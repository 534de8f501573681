"""Steps of a small network in JAX, traced by its profiler: `python stepped_in_jax.py FOLDER`."""

import sys

import jax
import jax.numpy as jnp


def loss(layers: list, batch: jax.Array) -> jax.Array:
    """Return the mean square of what the layers make of a batch."""
    for layer in layers:
        batch = jnp.tanh(batch @ layer)
    return jnp.mean(batch**2)


@jax.jit
def stepped(layers: list, batch: jax.Array) -> list:
    """Return the layers after one step of gradient descent."""
    return [layer - 0.01 * slope for layer, slope in zip(layers, jax.grad(loss)(layers, batch), strict=True)]


def main() -> None:
    keys = jax.random.split(jax.random.PRNGKey(0), 5)
    layers = [jax.random.normal(key, (2048, 2048)) / 45 for key in keys[:4]]
    batch = jax.random.normal(keys[4], (4096, 2048))
    layers = stepped(layers, batch)
    jax.block_until_ready(layers)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(sys.argv[1], profiler_options=options):
        for number in range(40):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                layers = stepped(layers, batch)
        jax.block_until_ready(layers)


if __name__ == "__main__":
    main()
