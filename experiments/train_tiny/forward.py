"""The network's forward pass for training: many questions about one picture in one sequence.

It runs on the very modules of the transformers model (their weights, not copies), and computes the
same function; what differs is that a picture and the words before the expression are passed once for
all expressions on it, and that attention can be looked at. `test_tiny_models` compares the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # torch's own custom


def cells(model: Any, pixels: Tensor) -> Tensor:
    """Image tokens (batch, cells, width): vision tower, pixel shuffle where there is one, projector."""
    tower = model.model.vision_tower
    x = tower.embeddings(pixels)
    for layer in tower.encoder.layer:
        y = layer.layernorm_before(x)
        attention = layer.attention
        q, k, v = (
            _heads(f(y), attention.num_heads) for f in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        y = attention.projection_layer(_merge(F.scaled_dot_product_attention(q, k, v)))
        x = x + layer.lambda_1 * y
        x = x + layer.lambda_2 * layer.mlp(layer.layernorm_after(x))
    x = tower.layernorm(x)[:, 1:]
    ratio = model.config.downsample_ratio
    if ratio != 1.0:
        side = math.isqrt(x.shape[1])
        x = model.model.pixel_shuffle(x.reshape(len(x), side, side, -1), scale_factor=ratio)
        x = x.reshape(len(x), -1, x.shape[-1])
    return model.model.multi_modal_projector(x)


@dataclass
class Look:
    """Log-probabilities of attention of one head per layer: (batch × count, suffix, prefix + suffix)."""

    heads: dict[int, int]
    found: dict[int, Tensor]


def decode(
    model: Any,
    prefix: Tensor,
    suffix: Tensor,
    asked: Tensor,
    look: Look | None = None,
    places: Tensor | None = None,
) -> Tensor:
    """Final hidden states (batch, count, asked, width) at the suffix positions `asked`.

    prefix (batch, length, width) is causal; each suffix (batch, count, length, width) sees the prefix
    and itself and goes on counting positions where the prefix ended, as if it were the only one. The
    last layer computes what is asked for and no more. places: positions of the prefix, (length) or
    M-RoPE's (3, length); default: 0, 1, 2, …
    """
    decoder = model.model.language_model
    batch, count, length, width = suffix.shape
    size = prefix.shape[1]
    x = torch.cat([prefix, suffix.flatten(1, 2)], dim=1)
    places = torch.arange(size) if places is None else places
    rest = (places.max() + 1 + torch.arange(length)).repeat(count).expand(*places.shape[:-1], -1)
    cos, sin = (part[0] for part in decoder.rotary_emb(x, torch.cat([places, rest], -1).unsqueeze(-2)))
    mask = torch.cat(
        [torch.ones(length, size, dtype=torch.bool), torch.ones(length, length).tril().bool()], 1
    )
    heads = model.config.text_config.num_attention_heads
    for number, layer in enumerate(decoder.layers):
        attention = layer.self_attn
        y = _rms(layer.input_layernorm, x)
        k, v = _heads(attention.k_proj(y), heads), _heads(attention.v_proj(y), heads)
        k = k * cos + _half(k) * sin
        all_k, all_v = (_join(part, size, count) for part in (k, v))
        if number == len(decoder.layers) - 1:
            rows = asked.flatten(1) + size + length * torch.arange(count).repeat_interleave(asked.shape[-1])
            x = x.gather(1, rows[..., None].expand(-1, -1, width))
            q = _heads(attention.q_proj(_rms(layer.input_layernorm, x)), heads)
            q = _split(q * cos[rows][:, None] + _half(q) * sin[rows][:, None], count)
            mixed = F.scaled_dot_product_attention(
                q, all_k, all_v, attn_mask=mask[asked].flatten(0, 1)[:, None]
            )
            mixed = mixed.transpose(1, 2).reshape(batch, -1, width)
        else:
            q = _heads(attention.q_proj(y), heads)
            q = q * cos + _half(q) * sin
            a, b, c = q[:, :, :size], k[:, :, :size], v[:, :, :size]
            first = F.scaled_dot_product_attention(a, b, c, is_causal=True)
            q = _split(q[:, :, size:], count)
            rest = F.scaled_dot_product_attention(q, all_k, all_v, attn_mask=mask)
            rest = rest.transpose(1, 2).reshape(batch, count * length, width)
            mixed = torch.cat([_merge(first), rest], dim=1)
            if look is not None and number in look.heads:
                head = look.heads[number]
                scores = q[:, head] @ all_k[:, head].transpose(1, 2) * attention.scaling
                look.found[number] = scores.masked_fill(~mask, -1e4).log_softmax(-1)
        x = x + attention.o_proj(mixed)
        x = x + layer.mlp(_rms(layer.post_attention_layernorm, x))
    return _rms(decoder.norm, x).view(batch, count, -1, width)


def _split(x: Tensor, count: int) -> Tensor:
    """(batch, heads, count × length, size) → (batch × count, heads, length, size)."""
    return x.unflatten(2, (count, -1)).transpose(1, 2).flatten(0, 1)


def _join(x: Tensor, size: int, count: int) -> Tensor:
    """Keys or values of the prefix before those of each suffix."""
    shared = x[:, None, :, :size].expand(-1, count, -1, -1, -1).flatten(0, 1)
    return torch.cat([shared, _split(x[:, :, size:], count)], dim=2)


def _rms(norm: Any, x: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), norm.weight, norm.variance_epsilon)


def _heads(x: Tensor, count: int) -> Tensor:
    return x.view(*x.shape[:2], count, -1).transpose(1, 2)


def _merge(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def _half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)
