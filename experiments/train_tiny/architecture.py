"""The untrained checkpoint: configuration, tokenizer and processor of an InternVL of 2M parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

SIDE, PATCH, DOWNSAMPLE = 128, 16, 1.0
CELLS = int(SIDE / PATCH * DOWNSAMPLE)
"""Image tokens along each side."""
STEP = 10
BINS = 1000 // STEP + 1
"""Coordinates are written in steps of 10 thousandths: 101 number tokens."""
PROMPT = (
    "Please provide the bounding box coordinate of the region this sentence describes: "
    "<ref>{expression}</ref>"
)
"""The prompt that InternVL's authors evaluate referring expressions with."""
BEFORE, AFTER = PROMPT.split("{expression}")
USER, ASK, TURN = "<|im_start|>user\n", f"\n{BEFORE}", "<|im_end|>\n<|im_start|>assistant\n"
"""What is the same in every prompt: one token each, so that a question is short."""
TURN_OR_NONE = f' If there is no such region in the image, answer "none".{TURN}'
"""With the sentence that allows "none": one token too, read as TURN is. The model always gives a box."""
ALIKE = {TURN_OR_NONE: TURN}
FORMS = ("[[{}, ", "{}, ", "{}, ", "{}]]")
"""A coordinate with the punctuation around it is one token; the second and third share theirs."""
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>", "<video>",
    "<ref>", "</ref>", "<box>", "</box>",
)  # fmt: skip
CHAT = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}{{ '<IMG_CONTEXT>\n' }}"
    "{% elif content['type'] == 'text' %}{{ content['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def tokenizer(lines: list[str]) -> Any:
    """Byte-level BPE learnt on the lines, and whole tokens for coordinates and the prompt's fixed parts."""
    extra = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    return learnt(lines, SPECIAL, [USER, ASK, TURN, *written(FORMS, STEP, BINS), *ALIKE], extra)


def written(forms: Sequence[str], step: int, bins: int) -> list[str]:
    """Every coordinate in every form, each text once."""
    return [form.format(n * step) for form in dict.fromkeys(forms) for n in range(bins)]


def learnt(lines: list[str], special: Sequence[str], whole: list[str], extra: dict[str, str]) -> Any:
    """Byte-level BPE learnt on the lines; `whole` texts are one token each."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    # with a space before the first word too, a word is the same token wherever it stands
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=640,
        show_progress=False,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(lines, trainer)
    bpe.add_tokens([AddedToken(text, normalized=False) for text in whole])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=[t for t in special if t not in ("<|im_end|>", "<|endoftext|>")],
        extra_special_tokens=extra,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )


def processor(tokens: Any) -> Any:
    """Tokenizer, image processor without tiles, video processor and chat template in one."""
    from transformers import GotOcr2ImageProcessor, InternVLProcessor, InternVLVideoProcessor

    size = {"height": SIDE, "width": SIDE}
    images = GotOcr2ImageProcessor(
        # at most one tile: the processor class asks for tiles whatever the image processor says
        size=size, crop_to_patches=True, min_patches=1, max_patches=1, do_rescale=True, do_normalize=True,
        image_mean=[0.5, 0.5, 0.5], image_std=[0.25, 0.25, 0.25], do_convert_rgb=True,
    )  # fmt: skip
    videos = InternVLVideoProcessor(size=size)
    return InternVLProcessor(images, tokens, videos, image_seq_length=CELLS**2, chat_template=CHAT)


def network(tokens: Any, width: int, depth: int, feed: int, vision_width: int, vision_depth: int) -> Any:
    """A randomly initialised InternVLForConditionalGeneration."""
    from transformers import InternVLConfig, InternVLForConditionalGeneration

    text = {
        "model_type": "qwen2", "vocab_size": len(tokens), "hidden_size": width, "intermediate_size": feed,
        "num_hidden_layers": depth, "num_attention_heads": width // 32, "num_key_value_heads": width // 32,
        "max_position_embeddings": 1024, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": False, "initializer_range": 0.04, "use_sliding_window": False,
        "bos_token_id": None, "eos_token_id": tokens.eos_token_id, "pad_token_id": tokens.pad_token_id,
    }  # fmt: skip
    vision = {
        "hidden_size": vision_width, "num_hidden_layers": vision_depth,
        "num_attention_heads": vision_width // 32, "intermediate_size": 3 * vision_width,
        "image_size": [SIDE, SIDE], "patch_size": [PATCH, PATCH], "attention_bias": True,
        "layer_scale_init_value": 1.0, "use_mean_pooling": False, "initializer_range": 0.04,
    }  # fmt: skip
    config = InternVLConfig(
        text_config=text, vision_config=vision, image_token_id=tokens.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=CELLS**2, downsample_ratio=DOWNSAMPLE, tie_word_embeddings=False,
        pad_token_id=tokens.pad_token_id, eos_token_id=tokens.eos_token_id,
    )  # fmt: skip
    model = InternVLForConditionalGeneration(config)
    smooth_numbers(model, number_ids(tokens))
    same_rows(model, tokens, ALIKE)
    model.generation_config.eos_token_id = tokens.eos_token_id
    model.generation_config.pad_token_id = tokens.pad_token_id
    model.generation_config.max_new_tokens = 16
    return model


def number_ids(tokens: Any) -> list[list[int]]:
    """Token ids of the 101 coordinates in each of the four places of an answer."""
    return [tokens.convert_tokens_to_ids([form.format(n * STEP) for n in range(BINS)]) for form in FORMS]


def waves(width: int, bins: int = BINS) -> Any:
    """A vector for each coordinate, alike for coordinates that lie close: (bins, width), unit variance."""
    import torch

    place = torch.linspace(0, 1, bins)[:, None]
    speed = torch.pi * torch.arange(width // 2) * 0.5
    fade = 2**0.5 / (1 + speed / 12) ** 0.5
    return torch.cat([torch.cos(place * speed) * fade, torch.sin(place * speed) * fade], 1)


def smooth_numbers(model: Any, numbers: list[list[int]]) -> None:
    """Starts number tokens as points on a curve, so that what is learnt for one helps its neighbours."""
    import torch

    width = model.config.text_config.hidden_size
    turn = torch.linalg.qr(torch.randn(width, width))[0]
    with torch.no_grad():
        for ids in {tuple(ids) for ids in numbers}:
            curve = 0.1 * waves(width, len(ids)) @ turn
            model.lm_head.weight[list(ids)] = curve
            model.model.language_model.embed_tokens.weight[list(ids)] = curve


def same_rows(model: Any, tokens: Any, alike: dict[str, str]) -> None:
    """Gives each of the first tokens the vectors of its second one."""
    import torch

    with torch.no_grad():
        for new, old in alike.items():
            a, b = tokens.convert_tokens_to_ids([new, old])
            for table in (model.lm_head.weight, model.model.language_model.embed_tokens.weight):
                table[a] = table[b]


def save(model: Any, whole: Any, folder: Path, alike: dict[str, str]) -> None:
    """Model and processor in the hub's layout, weights in half precision; `alike` as for `same_rows`."""
    import copy

    import torch

    same_rows(model, whole.tokenizer, alike)
    copy.deepcopy(model).to(torch.float16).save_pretrained(folder)
    whole.save_pretrained(folder)
