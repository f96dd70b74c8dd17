"""OpenVINO behind OpenAI's protocol: a small server, since none of its Python packages has one for images.

PYTHON openvino_server.py CHECKPOINT PORT

Runs in the environment of OpenVINO and knows nothing of this package. The checkpoint (a folder) is converted
once into a temporary folder and answered on the CPU in float32, greedy, one request at a time.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Engine:
    """A converted checkpoint. Raises what the conversion raises where its architecture isn't known."""

    def __init__(self, checkpoint: str, folder: str) -> None:
        from optimum.exporters.openvino import main_export
        from optimum.intel import OVModelForVisualCausalLM
        from transformers import AutoProcessor

        main_export(checkpoint, folder, task="image-text-to-text")
        options = {"INFERENCE_PRECISION_HINT": "f32"}
        self.model = OVModelForVisualCausalLM.from_pretrained(folder, device="CPU", ov_config=options)
        self.processor = AutoProcessor.from_pretrained(folder)
        ends = self.model.generation_config.eos_token_id
        self.ends = set(ends if isinstance(ends, list) else [ends])
        self.lock = threading.Lock()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """A chat completion."""
        images: list[Any] = []
        turns = [
            {"role": message["role"], "content": [part_of(part, images) for part in parts_of(message)]}
            for message in asked["messages"]
        ]
        prompt = self.processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        limit = asked.get("max_tokens") or asked["max_completion_tokens"]
        with self.lock:
            inputs = self.processor(text=[prompt], images=images or None, return_tensors="pt")
            made = self.model.generate(
                **inputs, max_new_tokens=limit, do_sample=False,
                repetition_penalty=asked.get("repetition_penalty", 1.0),
            )  # fmt: skip
        length = inputs["input_ids"].shape[1]
        new = made[0, length:].tolist()
        count = next((i for i, token in enumerate(new) if token in self.ends), len(new))
        text = self.processor.tokenizer.decode(new[:count], clean_up_tokenization_spaces=False)
        ended = count < len(new)
        return {
            "object": "chat.completion",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop" if ended else "length",
                }
            ],
            "usage": {"prompt_tokens": length, "completion_tokens": count + ended},
        }


def parts_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a message; a text alone is one."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def part_of(part: dict[str, Any], images: list[Any]) -> dict[str, Any]:
    """A part as a chat template takes it; an image (a data URL) is added to images."""
    if part["type"] != "image_url":
        return part
    from PIL import Image

    data = part["image_url"]["url"].partition(",")[2]
    images.append(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))
    return {"type": "image"}


def handler(engine: Engine) -> type[BaseHTTPRequestHandler]:
    """Answers /v1/models and /v1/chat/completions."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # the name that http.server calls
            known = self.path == "/v1/models"
            body = {"object": "list", "data": [{"id": "openvino"}]} if known else {"error": "no such path"}
            self.told(200 if known else 404, body)

        def do_POST(self) -> None:  # the name that http.server calls
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                self.told(200, engine.answer(asked))
            except Exception as error:  # the request's own
                self.told(400, {"error": {"message": f"{type(error).__name__}: {error}"}})

        def told(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: Any) -> None:
            """Says nothing of each request."""

    return Handler


def main() -> None:
    checkpoint, port = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="openvino-") as folder:
        engine = Engine(checkpoint, str(Path(folder) / "converted"))
        ThreadingHTTPServer(("127.0.0.1", int(port)), handler(engine)).serve_forever()


if __name__ == "__main__":
    main()
