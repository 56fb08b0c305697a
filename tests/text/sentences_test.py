#!/usr/bin/env python3
"""`posenc encode --text` beside AutoTokenizer, torch and the stages of sentence-transformers, on random BERT models.

    tests/text/sentences_test.py --posenc build/release/posenc [--seed N]
"""

import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from model_lines import POSITIONS, SEE_PADDING, VOCAB, WIDTH, ModelLines, main, write_json
from safetensors.torch import load_file, save_file
from tokenizers import normalizers, processors


class Sentences(ModelLines):
    def vectors(self, folder: Path, lines: list[str], *more) -> torch.Tensor:
        out = self.folder / "out.safetensors"
        self.run_posenc("encode", folder, "--text", self.file(lines), "--out", out, *more)
        return load_file(out)["embeddings"]

    def hidden(self, model, tokenizer, text: str, limit: int) -> torch.Tensor:
        """The last hidden state of one text alone."""
        given = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
        with torch.no_grad():
            return model(**given).last_hidden_state[0]

    def test_folder_without_stages(self):
        folder, model, tokenizer = self.model("BertModel")
        lines = self.lines(9)
        expected = [self.hidden(model, tokenizer, line, self.limit(tokenizer)).mean(0) for line in lines]
        self.close(self.vectors(folder, lines, "--batch", self.rng.randint(1, 9)), torch.stack(expected))

    def test_each_text_is_as_if_alone(self):
        for kind in SEE_PADDING:
            folder, model, tokenizer = self.model(f"{kind}Model")
            lines = self.lines(9)
            expected = [self.hidden(model, tokenizer, line, self.limit(tokenizer)).mean(0) for line in lines]
            self.close(self.vectors(folder, lines), torch.stack(expected))

    def test_types_without_a_table(self):
        """XLNet has a term for tokens of one segment, and XLM takes the rows of tokens; neither has a table of types."""
        sizes = {"XLNetModel": {"d_model": WIDTH, "n_layer": 2, "n_head": 4, "d_inner": 24}, "XLMModel": {"emb_dim": WIDTH, "n_layers": 2, "n_heads": 4}}
        for name, own in sizes.items():
            config = getattr(transformers, name.replace("Model", "Config"))(vocab_size=len(VOCAB), pad_token_id=0, **own)
            model = getattr(transformers, name)(config).eval()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(torch.randn_like(parameter) * 0.2)
            for has_types in (True, False):
                folder = self.folder / f"{name}-{has_types}"
                _, _, tokenizer = self.model("BertModel")
                tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"] if has_types else ["input_ids", "attention_mask"]
                model.save_pretrained(folder)
                tokenizer.save_pretrained(folder)
                saved = json.loads((folder / "tokenizer_config.json").read_text())
                write_json(folder / "tokenizer_config.json", saved | {"model_input_names": tokenizer.model_input_names})
                lines = self.lines(5)
                expected = [self.hidden(model, tokenizer, line, tokenizer.model_max_length).mean(0) for line in lines]
                self.close(self.vectors(folder, lines), torch.stack(expected))

    def test_stages_and_prompts(self):
        folder, model, tokenizer = self.model("BertModel")
        most = self.rng.choice([None, 8, POSITIONS])
        prompts = {"query": "hello world ", "passage": "the cat"}
        kinds = ["Transformer", "Pooling", "Dense", "Normalize"]
        write_json(folder / "modules.json", [{"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{kind}", "type": f"sentence_transformers.models.{kind}"}
                                             for i, kind in enumerate(kinds)])  # fmt: skip
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": most, "do_lower_case": False})
        write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": "query"})
        pooling = self.rng.choice(["pooling_mode_mean_tokens", "pooling_mode_cls_token", "pooling_mode_lasttoken", "pooling_mode_max_tokens"])
        write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, pooling: True})
        write_json(folder / "2_Dense/config.json", {"in_features": WIDTH, "out_features": 8, "bias": True})  # no activation: Tanh
        dense = torch.nn.Linear(WIDTH, 8)
        save_file({f"linear.{name}": value.detach() for name, value in dense.named_parameters()}, folder / "2_Dense/model.safetensors")
        pool = {"pooling_mode_mean_tokens": lambda rows: rows.mean(0), "pooling_mode_cls_token": lambda rows: rows[0],
                "pooling_mode_lasttoken": lambda rows: rows[-1], "pooling_mode_max_tokens": lambda rows: rows.amax(0)}[pooling]  # fmt: skip
        lines = self.lines(9)
        for prompt, more in [("hello world ", []), ("the cat", ["--prompt", "passage"]), ("", ["--prompt", ""]), ("on ", ["--prompt-text", "on "])]:
            rows = [pool(self.hidden(model, tokenizer, prompt + line, most or self.limit(tokenizer))) for line in lines]
            with torch.no_grad():
                expected = torch.nn.functional.normalize(dense(torch.stack(rows)).tanh(), dim=-1)
            self.close(self.vectors(folder, lines, *more), expected)
            cut = torch.nn.functional.normalize(expected[:, :5], dim=-1)
            self.close(self.vectors(folder, lines, *more, "--truncate-dim", 5, "--normalize"), cut)

    def test_prompts_that_are_not_pooled(self):
        """A special token at a prompt's end is no part of it: one of all_special_ids, whatever the template adds there."""
        for extra, template in [([], "[CLS] $A [SEP]"), (["mat"], "$A"), ([], "[CLS] $A cat"), (["cat"], "[CLS] $A cat"), (["[X]"], "[X] $A [X]")]:
            with tempfile.TemporaryDirectory(dir=self.folder) as place:
                folder, model, tokenizer = self.model("BertModel")
                tokenizer.add_special_tokens({"extra_special_tokens": extra})
                model.resize_token_embeddings(len(tokenizer))
                names = [name for name in template.split() if name != "$A"]
                tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(template, None, [(name, tokenizer.convert_tokens_to_ids(name)) for name in {*names}])
                folder = Path(place)
                tokenizer.save_pretrained(folder)
                config = json.loads((folder / "tokenizer_config.json").read_text())
                write_json(folder / "tokenizer_config.json", config | {"tokenizer_class": "PreTrainedTokenizerFast"})
                model.save_pretrained(folder)
                tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
                write_json(folder / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
                                                     for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling")])])  # fmt: skip
                write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True, "include_prompt": False})
                lines = self.lines(4)
                for prompt in ("hello world ", "the mat", "cat", "a [MASK]", "the [SEP]"):
                    where = f"{self.seed} {extra} {template} {prompt}"
                    ids = tokenizer(prompt).input_ids
                    left_out = len(ids) - (ids[-1] in tokenizer.all_special_ids)
                    rows = [self.hidden(model, tokenizer, prompt + line, self.limit(tokenizer))[left_out:] for line in lines]
                    rows = [row.sum(0) / max(len(row), 1) for row in rows]  # the prompt may be a part of the first word
                    got = self.vectors(folder, lines, "--prompt-text", prompt)
                    self.assertLess((got - torch.stack(rows)).abs().max().item(), 1e-4, where)
                    if importlib.util.find_spec("sentence_transformers"):
                        from sentence_transformers import SentenceTransformer

                        theirs = SentenceTransformer(str(folder), device="cpu").encode(lines, prompt=prompt, convert_to_tensor=True, batch_size=1)
                        self.assertLess((got - theirs).abs().max().item(), 1e-4, where)

    def test_lowercase_before_the_tokenizer(self):
        folder, model, tokenizer = self.model("BertModel", do_lower_case=False)
        lines = ["Sat BANK", "THE Cat SAT", *self.lines(5)]
        plain = self.vectors(folder, lines)
        write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                                             {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])  # fmt: skip
        write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True})
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": None, "do_lower_case": True})
        backend = tokenizer.backend_tokenizer
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), backend.normalizer])
        expected = torch.stack([self.hidden(model, tokenizer, line, self.limit(tokenizer)).mean(0) for line in lines])
        self.assertGreater((plain - expected).abs().max().item(), 0.01)  # the case of letters matters to this model
        self.close(self.vectors(folder, lines), expected)


if __name__ == "__main__":
    sys.exit(main())
