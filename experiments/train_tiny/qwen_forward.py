"""Qwen2.5-VL's own parts of the training forward pass; the rest is `forward`'s."""

from __future__ import annotations

from typing import Any

import torch
from bank import Grid
from forward import _half, _heads, _merge, _rms
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # torch's own custom


def cells(model: Any, pixels: Tensor) -> Tensor:
    """Image tokens (batch, rows × columns, width) of pictures of one size."""
    tower = model.model.visual
    # a still picture is given twice, as two frames
    x = F.conv2d(pixels, tower.patch_embed.proj.weight.sum(2), stride=tower.patch_size)
    rows, columns = x.shape[2:]
    x = x.flatten(2).transpose(1, 2)
    where = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    cos, sin = tower.rotary_pos_emb(x, where)
    for block in tower.blocks:
        q, k, v = block.attn.qkv(_rms(block.norm1, x)).chunk(3, -1)
        q, k, v = (_heads(part, block.attn.num_heads) for part in (q, k, v))
        q, k = (part * cos + _half(part) * sin for part in (q, k))
        x = x + block.attn.proj(_merge(F.scaled_dot_product_attention(q, k, v)))
        x = x + block.mlp(_rms(block.norm2, x))
    return tower.merger.mlp(_rms(tower.merger.ln_q, x))


def places(before: int, grid: Grid, after: int) -> Tensor:
    """M-RoPE's (3, length) of text, a picture, text: time, row, column."""
    columns, rows = grid
    where = torch.cartesian_prod(torch.tensor([0]), torch.arange(rows), torch.arange(columns))
    image = before + where.T
    first = torch.arange(before).expand(3, -1)
    return torch.cat([first, image, (image.max() + 1 + torch.arange(after)).expand(3, -1)], 1)


def early(model: Any, prefix: Tensor, places: Tensor, layers: int) -> list[Tensor]:
    """Hidden states of the prefix after each of the decoder's first layers."""
    decoder = model.model.language_model
    cos, sin = (part[0] for part in decoder.rotary_emb(prefix, places.unsqueeze(-2)))
    heads = model.config.text_config.num_attention_heads
    x, found = prefix, []
    for layer in decoder.layers[:layers]:
        attention, y = layer.self_attn, _rms(layer.input_layernorm, x)
        q, k, v = (_heads(f(y), heads) for f in (attention.q_proj, attention.k_proj, attention.v_proj))
        q, k = (part * cos + _half(part) * sin for part in (q, k))
        x = x + attention.o_proj(_merge(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        x = x + layer.mlp(_rms(layer.post_attention_layernorm, x))
        found.append(x)
    return found
