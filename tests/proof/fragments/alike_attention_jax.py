# Look-alike: attention in JAX. Origin: written for this table.
import jax


def jax_attention(q, k, v):
    return jax.numpy.matmul(jax.nn.softmax(jax.numpy.matmul(q, k)), v)
