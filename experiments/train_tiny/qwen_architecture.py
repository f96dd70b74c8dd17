"""The untrained Qwen2.5-VL checkpoint: configuration, tokenizer and processor."""

from __future__ import annotations

from typing import Any

from architecture import learnt, same_rows, smooth_numbers, written

from refadv_ablate.parsing.frames import SmartResize

PATCH = 16
"""Pixels along the side of an image token: patches are not merged."""
AREA = 18_000
"""Pictures are brought to at most so many pixels, and smaller ones to at least as many."""
RESIZE = SmartResize(PATCH, AREA, AREA)
ROOM = 144
"""Longest side of a drawn picture after the resize."""
STEP, BINS = 2, 81
"""Coordinates are written in steps of 2 pixels, up to 160."""
PROMPT = (
    'Locate every object that matches the description "{expression}" in the image.'
    " Report bbox coordinates in JSON format."
)
BEFORE, AFTER = PROMPT.split("{expression}")
SYSTEM = ("<|im_start|>system\n", "You are", " a helpful", " assistant.", "<|im_end|>\n<|im_start|>user\n")
"""What stands before the picture; an image token finds its place by looking back at these."""
TURN = "<|im_end|>\n<|im_start|>assistant\n"
TAIL = f"{AFTER}{TURN}"
TAIL_OR_NONE = f"{AFTER} If no object matches, report an empty list: [].{TURN}"
"""With the sentence that allows "none": one token too, read as TAIL is. The model always gives a box."""
ALIKE = {TAIL_OR_NONE: TAIL}
FORMS = ('```json\n[\n\t{{"bbox_2d": [{}, ', "{}, ", "{}, ", '{}], "label": "object"}}\n]\n```')
"""A coordinate with the text around it is one token; the second and third share theirs."""
IMAGE = "<|image_pad|>"
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", IMAGE,
    "<|video_pad|>",
)  # fmt: skip
CHAT = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{% elif content['type'] == 'text' %}{{ content['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def tokenizer(lines: list[str]) -> Any:
    """Byte-level BPE learnt on the lines, and whole tokens for coordinates and the prompt's fixed parts."""
    extra = {"image_token": IMAGE, "video_token": "<|video_pad|>"}
    return learnt(lines, SPECIAL, [*SYSTEM, BEFORE, TAIL, *written(FORMS, STEP, BINS), *ALIKE], extra)


def number_ids(tokens: Any) -> list[list[int]]:
    """Token ids of the coordinates in each of the four places of an answer."""
    return [tokens.convert_tokens_to_ids([form.format(n * STEP) for n in range(BINS)]) for form in FORMS]


def processor(tokens: Any) -> Any:
    """Tokenizer, image and video processor and chat template in one."""
    from transformers import Qwen2_5_VLProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    sizes: dict[str, Any] = {
        "size": {"shortest_edge": AREA, "longest_edge": AREA}, "patch_size": PATCH, "merge_size": 1,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25],
    }  # fmt: skip
    images = Qwen2VLImageProcessor(do_convert_rgb=True, **sizes)
    return Qwen2_5_VLProcessor(images, tokens, Qwen2VLVideoProcessor(**sizes), chat_template=CHAT)


def network(tokens: Any, width: int, depth: int, feed: int, vision_width: int, vision_depth: int) -> Any:
    """A randomly initialised Qwen2_5_VLForConditionalGeneration."""
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    text = {
        "model_type": "qwen2_5_vl_text", "vocab_size": len(tokens), "hidden_size": width,
        "intermediate_size": feed, "num_hidden_layers": depth, "num_attention_heads": width // 32,
        "num_key_value_heads": width // 32, "max_position_embeddings": 1024, "initializer_range": 0.04,
        # time, rows, columns: with the shares of the real ones, columns would turn by next to nothing;
        # so rows get the second to fourth speed, columns the next, and most stay slow for content
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "mrope_section": [1, 3, 12]},
        "tie_word_embeddings": False, "use_sliding_window": False, "bos_token_id": None,
        "eos_token_id": tokens.eos_token_id, "pad_token_id": tokens.pad_token_id,
    }  # fmt: skip
    vision = {
        "hidden_size": vision_width, "depth": vision_depth, "num_heads": vision_width // 32,
        "intermediate_size": 2 * vision_width, "out_hidden_size": width, "patch_size": PATCH,
        "spatial_merge_size": 1, "window_size": 16 * PATCH, "initializer_range": 0.04,
        "fullatt_block_indexes": list(range(vision_depth)),
    }  # fmt: skip
    names = {
        "image_token_id": IMAGE, "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>", "vision_end_token_id": "<|vision_end|>",
    }  # fmt: skip
    config = Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, tie_word_embeddings=False,
        pad_token_id=tokens.pad_token_id, eos_token_id=tokens.eos_token_id,
        **{key: tokens.convert_tokens_to_ids(name) for key, name in names.items()},
    )  # fmt: skip
    model = Qwen2_5_VLForConditionalGeneration(config)
    smooth_numbers(model, number_ids(tokens))
    same_rows(model, tokens, ALIKE)
    model.generation_config.eos_token_id = tokens.eos_token_id
    model.generation_config.pad_token_id = tokens.pad_token_id
    model.generation_config.max_new_tokens = 16
    return model
