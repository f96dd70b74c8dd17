"""Tiny random checkpoints, saved as the hub lays them out: the architectures and processor classes of
the real ones with a few ten thousand parameters. Their answers mean nothing; that they load, batch and
generate through the same YAML and code path as the real ones does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

WORDS = [
    "Where is the red box left of the blue circle near a big dog that has no hat on its head",
    'Locate every object that matches the description "the man on the right" in the image.',
    "Please provide the bounding box coordinate of the region this sentence describes: [1, 2, 30, 400]",
    '{"bbox_2d": [10, 20, 110, 220], "label": "it"} user assistant system 0123456789',
]

QWEN_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}"
    "{% if c.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ c.text }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking %}<think>\n{% endif %}{% endif %}"
)
INTERN_TEMPLATE = QWEN_TEMPLATE.replace("<|vision_start|><|image_pad|><|vision_end|>", "<IMG_CONTEXT>\n")
GLM_TEMPLATE = (
    "[gMASK]<sop>{% for m in messages %}<|{{ m.role }}|>\n"
    "{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}"
    "{% if c.type == 'image' %}<|begin_of_image|><|image|><|end_of_image|>{% else %}{{ c.text }}{% endif %}"
    "{% endfor %}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>\n{% endif %}{% endif %}"
)


def bpe(special: Sequence[str], vocabulary: int = 400) -> Any:
    """A byte-level BPE learnt from a few sentences."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=list(special), initial_alphabet=letters, show_progress=False
    )
    made.train_from_iterator(WORDS, trainer)
    return made


def fast_tokenizer(
    special: Sequence[str], extra: dict[str, str] | None = None, eos: str = "<|im_end|>", **more: Any
) -> Any:
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(
        tokenizer_object=bpe(special),
        eos_token=eos,
        pad_token=special[0],
        extra_special_tokens=extra or {},
        **more,
    )
    made.padding_side = "left"
    return made


def save(folder: Path, model: Any, processor: Any, eos: int | None = None, pad: int | None = None) -> Path:
    if eos is not None:
        model.generation_config.eos_token_id = eos
        model.generation_config.pad_token_id = pad
    model.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def seeded(build: Callable[[], Any], seed: int = 0) -> Any:
    """Weights large enough that answers differ from request to request."""
    import torch

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        model = build()
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.normal_(0, 0.25)
        return model


def internvl(folder: Path) -> Path:
    from transformers import (
        GotOcr2ImageProcessor,
        InternVLConfig,
        InternVLForConditionalGeneration,
        InternVLProcessor,
        InternVLVideoProcessor,
    )

    extra = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    special = [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        *extra.values(),
        "<ref>",
        "</ref>",
        "<box>",
        "</box>",
    ]
    tokens = fast_tokenizer(special, extra)
    config = InternVLConfig(
        vision_config={
            "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
            "image_size": [28, 28], "patch_size": [7, 7], "use_absolute_position_embeddings": True,
        },
        text_config=qwen_text("qwen2", len(tokens)),
        image_token_id=tokens.context_image_token_id, image_seq_length=4, downsample_ratio=0.5,
    )  # fmt: skip
    processor = InternVLProcessor(
        GotOcr2ImageProcessor(size={"height": 28, "width": 28}, crop_to_patches=True, max_patches=4),
        tokens,
        InternVLVideoProcessor(size={"height": 28, "width": 28}),
        image_seq_length=4,
        chat_template=INTERN_TEMPLATE,
    )
    model = seeded(lambda: InternVLForConditionalGeneration(config))
    return save(folder, model, processor, tokens.eos_token_id, tokens.pad_token_id)


def qwen_text(kind: str, vocabulary: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": kind, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": vocabulary,
        "max_position_embeddings": 8192, "tie_word_embeddings": False, **more,
    }  # fmt: skip


QWEN_EXTRA = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"}
QWEN_SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>",
    *QWEN_EXTRA.values(), "<|box_start|>", "<|box_end|>",
]  # fmt: skip


def qwen_ids(tokens: Any) -> dict[str, int]:
    names = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    return {key: tokens.convert_tokens_to_ids(name) for key, name in names.items()}


def qwen2_5_vl(folder: Path) -> Path:
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    tokens = fast_tokenizer(QWEN_SPECIAL, QWEN_EXTRA)
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
    config = Qwen2_5_VLConfig(
        vision_config={
            "depth": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32, "out_hidden_size": 32,
            "patch_size": 14, "spatial_merge_size": 2, "window_size": 56, "fullatt_block_indexes": [1],
        },
        text_config=qwen_text("qwen2_5_vl_text", len(tokens), rope_parameters=rope),
        **qwen_ids(tokens),
    )  # fmt: skip
    size = {"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 16}
    processor = Qwen2_5_VLProcessor(
        Qwen2VLImageProcessor(size=size), tokens, Qwen2VLVideoProcessor(), chat_template=QWEN_TEMPLATE
    )
    model = seeded(lambda: Qwen2_5_VLForConditionalGeneration(config))
    return save(folder, model, processor, tokens.eos_token_id, tokens.pad_token_id)


def qwen3_vl(folder: Path) -> Path:
    from transformers import (
        Qwen2VLImageProcessor,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    tokens = fast_tokenizer(QWEN_SPECIAL, QWEN_EXTRA)
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
    config = Qwen3VLConfig(
        vision_config=qwen3_vision() | {"deepstack_visual_indexes": [0]},
        text_config=qwen_text("qwen3_vl_text", len(tokens), rope_parameters=rope, head_dim=8),
        **qwen_ids(tokens),
    )
    size = {"shortest_edge": 32 * 32, "longest_edge": 32 * 32 * 16}
    processor = Qwen3VLProcessor(
        Qwen2VLImageProcessor(size=size, patch_size=16),
        tokens,
        Qwen3VLVideoProcessor(),
        chat_template=QWEN_TEMPLATE,
    )
    model = seeded(lambda: Qwen3VLForConditionalGeneration(config))
    return save(folder, model, processor, tokens.eos_token_id, tokens.pad_token_id)


def qwen3_vision() -> dict[str, Any]:
    return {
        "depth": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32, "out_hidden_size": 32,
        "patch_size": 16, "spatial_merge_size": 2, "num_position_embeddings": 64,
    }  # fmt: skip


def qwen3_5(folder: Path) -> Path:
    from transformers import (
        Qwen2VLImageProcessor,
        Qwen3_5Config,
        Qwen3_5ForConditionalGeneration,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    tokens = fast_tokenizer(QWEN_SPECIAL, QWEN_EXTRA)
    rope = {
        "rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1],
        "mrope_interleaved": True, "partial_rotary_factor": 0.5,
    }  # fmt: skip
    config = Qwen3_5Config(
        vision_config=qwen3_vision(),
        text_config=qwen_text(
            "qwen3_5_text", len(tokens), rope_parameters=rope, head_dim=16,
            layer_types=["linear_attention", "full_attention"],
            linear_num_value_heads=2, linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
        ),
        **qwen_ids(tokens),
    )  # fmt: skip
    size = {"shortest_edge": 32 * 32, "longest_edge": 32 * 32 * 16}
    processor = Qwen3VLProcessor(
        Qwen2VLImageProcessor(size=size, patch_size=16),
        tokens,
        Qwen3VLVideoProcessor(),
        chat_template=QWEN_TEMPLATE,
    )
    model = seeded(lambda: Qwen3_5ForConditionalGeneration(config))
    return save(folder, model, processor, tokens.eos_token_id, tokens.pad_token_id)


def glm4v_moe(folder: Path) -> Path:
    from transformers import (
        Glm4vImageProcessor,
        Glm4vMoeConfig,
        Glm4vMoeForConditionalGeneration,
        Glm4vProcessor,
        Glm4vVideoProcessor,
    )

    special = [
        "<|endoftext|>", "[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|system|>",
        "<|image|>", "<|video|>", "<|begin_of_image|>", "<|end_of_image|>",
        "<|begin_of_video|>", "<|end_of_video|>", "<|begin_of_box|>", "<|end_of_box|>",
    ]  # fmt: skip
    tokens = fast_tokenizer(
        special, {"image_token": "<|image|>", "video_token": "<|video|>"}, eos="<|endoftext|>"
    )
    named = {
        "image_token_id": "<|image|>", "video_token_id": "<|video|>",
        "image_start_token_id": "<|begin_of_image|>", "image_end_token_id": "<|end_of_image|>",
        "video_start_token_id": "<|begin_of_video|>", "video_end_token_id": "<|end_of_video|>",
    }  # fmt: skip
    rope = {
        "rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2],
        "partial_rotary_factor": 1.0,
    }  # fmt: skip
    config = Glm4vMoeConfig(
        vision_config={
            "depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32, "out_hidden_size": 32,
            "patch_size": 14, "spatial_merge_size": 2, "image_size": 56,
        },
        text_config=qwen_text(
            "glm4v_moe_text", len(tokens), rope_parameters=rope, head_dim=8, moe_intermediate_size=16,
            n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1,
            n_group=1, topk_group=1, pad_token_id=tokens.pad_token_id, eos_token_id=[tokens.eos_token_id],
        ),
        **{key: tokens.convert_tokens_to_ids(name) for key, name in named.items()},
    )  # fmt: skip
    size = {"shortest_edge": 28 * 28 * 2, "longest_edge": 28 * 28 * 32}
    processor = Glm4vProcessor(
        Glm4vImageProcessor(size=size), tokens, Glm4vVideoProcessor(), chat_template=GLM_TEMPLATE
    )
    model = seeded(lambda: Glm4vMoeForConditionalGeneration(config))
    ends = [tokens.convert_tokens_to_ids(name) for name in ("<|endoftext|>", "<|user|>")]
    model.generation_config.eos_token_id = ends
    model.generation_config.pad_token_id = tokens.pad_token_id
    return save(folder, model, processor)


def checkpoint_size(folder: Path) -> int:
    """Parameters of a saved checkpoint, from the header of its weights."""
    data = (folder / "model.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    total = 0
    for name, entry in header.items():
        if name != "__metadata__":
            count = 1
            for side in entry["shape"]:
                count *= side
            total += count
    return total


# ── grounders without a chat ────────────────────────────────────────────────────────────────────


def bert_tokenizer() -> Any:
    """Word pieces of single letters and a few words, as BERT's."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertTokenizerFast

    letters = [chr(c) for c in range(33, 127)]
    words = sorted({word.lower() for line in WORDS for word in line.split() if word.isalpha()})
    listed = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *words, *(f"##{c}" for c in letters)]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(listed))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return BertTokenizerFast(tokenizer_object=made, vocab=vocabulary, do_lower_case=True)


def dino_config(config_class: Any, vocabulary: int, **more: Any) -> Any:
    from transformers import BertConfig, SwinConfig

    backbone = SwinConfig(
        image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4,
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    text = BertConfig(
        vocab_size=vocabulary, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=128, pad_token_id=0,
    )  # fmt: skip
    return config_class(
        backbone_config=backbone, text_config=text, num_queries=12, d_model=32, encoder_layers=1,
        decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32,
        decoder_ffn_dim=32, num_feature_levels=3, max_text_len=64, **more,
    )  # fmt: skip


def grounding_dino(folder: Path) -> Path:
    from transformers import (
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
    )

    return _dino(
        folder,
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
    )


def mm_grounding_dino(folder: Path) -> Path:
    from transformers import (
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
        MMGroundingDinoConfig,
        MMGroundingDinoForObjectDetection,
    )

    return _dino(
        folder,
        MMGroundingDinoConfig,
        MMGroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
    )


def _dino(folder: Path, config: Any, model: Any, images: Any, processor: Any) -> Path:
    tokens = bert_tokenizer()
    made = processor(images(size={"shortest_edge": 64, "longest_edge": 96}), tokens)
    return save(folder, seeded(lambda: model(dino_config(config, len(tokens)))), made)


def owlv2(folder: Path) -> Path:
    from tokenizers import processors
    from transformers import (
        Owlv2Config,
        Owlv2ForObjectDetection,
        Owlv2ImageProcessor,
        Owlv2Processor,
        PreTrainedTokenizerFast,
    )

    backend = bpe(["!", "<|startoftext|>", "<|endoftext|>"])
    backend.post_processor = processors.TemplateProcessing(
        single="<|startoftext|> $A <|endoftext|>",
        special_tokens=[("<|startoftext|>", 1), ("<|endoftext|>", 2)],
    )
    tokens = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<|startoftext|>", eos_token="<|endoftext|>", pad_token="!",
        model_max_length=16,
    )  # fmt: skip
    text = {
        "vocab_size": len(tokens), "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "max_position_embeddings": 16, "bos_token_id": 1, "eos_token_id": 2,
        "pad_token_id": 0,
    }  # fmt: skip
    vision = {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "image_size": 64, "patch_size": 16,
    }  # fmt: skip
    config = Owlv2Config(text_config=text, vision_config=vision, projection_dim=16)
    processor = Owlv2Processor(Owlv2ImageProcessor(size={"height": 64, "width": 64}), tokens)
    return save(folder, seeded(lambda: Owlv2ForObjectDetection(config)), processor)


def florence2(folder: Path) -> Path:
    from transformers import (
        BartConfig,
        CLIPImageProcessor,
        Florence2Config,
        Florence2ForConditionalGeneration,
        Florence2Processor,
        Florence2VisionConfig,
    )

    special = ["<pad>", "<s>", "</s>", "<unk>", "<image>", *(f"<loc_{n}>" for n in range(1000))]
    tokens = fast_tokenizer(special, {"image_token": "<image>"}, eos="</s>", bos_token="<s>")
    vision = Florence2VisionConfig(
        in_channels=3, depths=[1, 1, 1, 1], embed_dim=[8, 8, 16, 16], num_heads=[1, 1, 2, 2],
        num_groups=[1, 1, 2, 2], window_size=4, projection_dim=16, drop_path_rate=0.0,
    )  # fmt: skip
    text = BartConfig(
        vocab_size=len(tokens), d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=32,
        decoder_ffn_dim=32, encoder_attention_heads=2, decoder_attention_heads=2,
        max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    config = Florence2Config(text_config=text, vision_config=vision, image_token_id=tokens.image_token_id)
    images = CLIPImageProcessor(size={"height": 64, "width": 64}, do_center_crop=False)
    images.image_seq_length = 5
    model = seeded(lambda: Florence2ForConditionalGeneration(config))
    tasks: dict[str, Any] = {"phrase_grounding": {}, "description_with_bboxes_or_polygons": {}}
    return save(folder, model, Florence2Processor(images, tokens, post_processor_config=tasks), 2, 0)
