"""Random folders of tokenizers, of every class that posenc has: what posenc makes of them beside transformers' AutoTokenizer.

Compared are all components, the model, the added tokens and the settings, and what comes out of random text. The folders
contradict themselves on purpose: files that the class ignores, tokens under several names, with and without flags.
"""

import argparse
import collections
import json
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical", TOKENIZERS_PARALLELISM="false", RUST_BACKTRACE="0")
import cases
import folder_cases
import transformers


def flags(token: dict) -> dict:
    return {name: token[name] for name in ("single_word", "lstrip", "rstrip", "normalized", "special")}


def model_facts(model: dict) -> dict:
    """The model without the defaults that the package writes or leaves out."""
    facts = {"type": model["type"], "vocab": model["vocab"]}
    if model["type"] == "Unigram":
        facts["vocab"] = [list(piece) for piece in model["vocab"]]
        return {**facts, "unk_id": model.get("unk_id"), "byte_fallback": bool(model.get("byte_fallback"))}
    facts["unk_token"] = model.get("unk_token")
    if model["type"] == "WordPiece":
        facts.update({name: model[name] for name in ("continuing_subword_prefix", "max_input_chars_per_word")})
    if model["type"] == "BPE":
        facts.update({name: bool(model.get(name)) for name in ("fuse_unk", "byte_fallback", "ignore_merges")})
        facts.update({name: model.get(name) or "" for name in ("continuing_subword_prefix", "end_of_word_suffix")})
        ranks = {tuple(merge.split(" ") if isinstance(merge, str) else merge): rank for rank, merge in enumerate(model["merges"])}
        facts["merges"] = [list(merge) for merge in sorted(ranks, key=ranks.get)]  # of equal ones the last counts
    return facts


def facts_of(definition: dict) -> dict:
    components = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
    return {**{name: definition[name] for name in components}, "model": model_facts(definition["model"]),
            "added_tokens": {token["content"]: flags(token) for token in definition["added_tokens"]}}  # fmt: skip


class Folders(unittest.TestCase):
    def setUp(self):
        self.posenc = cases.Posenc(options.cases)
        self.addCleanup(self.posenc.close)

    def test_random_folders(self):
        self.compare(folder_cases.json_folder, options.folders)

    def test_random_sentencepiece_models(self):
        try:
            import google.protobuf  # noqa: F401
        except ImportError:
            self.skipTest("transformers reads .model files only beside the package protobuf")
        with tempfile.TemporaryDirectory() as models:
            files = folder_cases.sentencepiece_models(Path(models))
            self.compare(lambda rng, folder: folder_cases.sentencepiece_folder(rng, folder, files), options.folders)

    def test_fixed_expression_of_mistral(self):
        """fix_mistral_regex counts for large vocabularies of older folders only."""
        vocabulary = {f"t{i}": i for i in range(100_001)}
        space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": False}
        split = {"type": "Split", "pattern": {"Regex": "a+"}, "behavior": "Isolated", "invert": False}
        configs = [{"model_type": "mistral"}, {"model_type": "gpt2"}, {"transformers_version": "5.0.0"}, {"transformers_version": "5.0.0rc1"}]
        pre_tokenizers = [space, folder_cases.byte_level(), {"type": "Sequence", "pretokenizers": [split, folder_cases.byte_level()]}, split]
        for pre_tokenizer, config in zip(pre_tokenizers, configs):
            with tempfile.TemporaryDirectory() as folder:
                model = {"type": "BPE", "vocab": vocabulary, "merges": []}
                file = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": pre_tokenizer, "post_processor": None,
                        "decoder": None, "model": model}  # fmt: skip
                folder_cases.write(Path(folder), "tokenizer.json", file)
                folder_cases.write(Path(folder), "config.json", config)
                folder_cases.write(Path(folder), "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "fix_mistral_regex": True})
                ours = self.posenc.ask(folder=folder)["definition"]["pre_tokenizer"]
                theirs = json.loads(transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer.to_str())["pre_tokenizer"]
                self.assertEqual(ours, theirs, config)

    def compare(self, make, folders):
        seed = options.seed if options.seed is not None else random.randrange(2**32)
        outcomes = collections.Counter()
        for number in range(folders):
            rng = random.Random(f"{seed} {number}")
            with tempfile.TemporaryDirectory() as folder:
                make(rng, Path(folder))
                outcomes[self.folder(rng, folder, f"--seed {seed}, folder {number}")] += 1
        self.assertGreater(outcomes["same"], folders * 0.7, f"--seed {seed}: {outcomes}")

    def folder(self, rng, folder, where):
        where += "".join(f"\n{file.name}: {file.read_text('utf-8', 'replace')[:3000]}" for file in sorted(Path(folder).iterdir()))
        ours = self.posenc.ask(folder=folder)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        except Exception as error:  # noqa: B902
            # posenc makes nothing of some folders that break in transformers, and something of others.
            return "both refuse" if "error" in ours else f"only transformers refuses: {type(error).__name__}"
        if "error" in ours:
            self.assertRegex(ours["error"], folder_cases.REFUSED, where)
            return "only posenc refuses"
        if hasattr(tokenizer, "_switch_to_input_mode"):  # as every call does: the language is that of the source
            tokenizer._switch_to_input_mode()
        theirs = json.loads(tokenizer.backend_tokenizer.to_str())
        for token in ours["definition"]["added_tokens"]:  # one that was special once stays so in decode()
            for other in theirs["added_tokens"]:
                other["special"] |= token["content"] == other["content"] and token["special"]
        self.assertEqual(ours["settings"], folder_cases.settings_of(tokenizer), where)
        self.assertEqual(tokenizer.pad_token_type_id, 0, where)  # that of XLNet, 3, is lost in its constructor
        ours, theirs = facts_of(ours["definition"]), facts_of(theirs)
        for name in theirs:
            self.assertEqual(ours[name], theirs[name], f"{name}\n{where}")
        for _ in range(3):
            self.text(rng, tokenizer, list(theirs["added_tokens"]), where)
        return "same"

    def text(self, rng, tokenizer, tokens, where):
        text, pair = cases.text(rng, tokens), cases.text(rng, tokens) if rng.random() < 0.4 else None
        target, pairs = rng.random() < 0.3 and not hasattr(tokenizer, "decode_best_spans"), None if pair is None else [pair]
        given = {"text_target": [text], "text_pair_target": pairs} if target else {}
        theirs = cases.without_panics(lambda: tokenizer(*([] if target else [[text], pairs]), **given, return_token_type_ids=True))
        ours = self.posenc.ask(encode=text, pair=pair, target=target)
        where = f"{text!r} {pair!r}\nposenc: {ours}\npackage: {theirs}\n{where}"
        if "error" in theirs or "error" in ours:
            self.assertTrue("error" in ours and ("error" in theirs or "stands for nothing" in ours["error"]), where)
            return
        row = ours["rows"][0]
        self.assertEqual((row["ids"], row["type_ids"]), (theirs["input_ids"][0], theirs["token_type_ids"][0]), where)
        for skip in (False, True):
            ours = self.posenc.ask(decode=row["ids"], skip=skip)["text"]
            theirs = tokenizer.decode(row["ids"], skip_special_tokens=skip)
            self.assertEqual(ours, theirs, f"skip {skip}\n{where}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--folders", type=int, default=150)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
