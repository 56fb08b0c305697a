"""Random folders of those classes of transformers that are written in Python: what posenc makes of them beside AutoTokenizer."""

import argparse
import collections
import json
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical", TOKENIZERS_PARALLELISM="false")
import cases
import folder_cases
import python_cases
import transformers

# What posenc says of folders that it refuses and transformers does not.
REFUSED = r"have the unknown token|have one id each|must be there for|be a token of (ByT5|Perceiver)|legacy: must be|have each token once"


def flags(token) -> dict:
    return {name: getattr(token, name) for name in ("content", "single_word", "lstrip", "rstrip")}


class Folders(unittest.TestCase):
    def setUp(self):
        self.posenc = cases.Posenc(options.cases)
        self.addCleanup(self.posenc.close)

    def test_random_folders(self):
        seed = options.seed if options.seed is not None else random.randrange(2**32)
        outcomes = collections.defaultdict(collections.Counter)
        with tempfile.TemporaryDirectory() as models:
            files = folder_cases.sentencepiece_models(Path(models))
            names = [options.only] if options.only else list(python_cases.CLASSES)
            for name in names:
                for number in range(options.folders):
                    rng = random.Random(f"{seed} {name} {number}")
                    with tempfile.TemporaryDirectory() as folder:
                        python_cases.random_folder(rng, Path(folder), files, name)
                        outcomes[name][self.folder(rng, folder, f"--seed {seed} --only {name}, folder {number}")] += 1
        for name, found in outcomes.items():
            self.assertGreater(found["same"], options.folders * 0.5, f"--seed {seed}: {name} {found}")

    def test_unknown_token_added_with_another_id(self):
        """The mask of special tokens leaves out unk_token_id, which is that of an added token before that of the vocabulary."""
        with tempfile.TemporaryDirectory() as models, tempfile.TemporaryDirectory() as folder:
            files = folder_cases.sentencepiece_models(Path(models))
            config = python_cases.marian(random.Random(1), Path(folder), files)
            vocabulary = json.loads(Path(folder, "vocab.json").read_text("utf-8"))
            other = next(index for token, index in vocabulary.items() if token not in ("<unk>", "</s>"))
            unknown = {"content": "<unk>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
            config |= {"tokenizer_class": "MarianTokenizer", "pad_token": "<unknown>", "added_tokens_decoder": {str(other): unknown}}
            folder_cases.write(Path(folder), "tokenizer_config.json", config)
            for seed in range(5):
                self.assertEqual(self.folder(random.Random(seed), folder, f"rng {seed}"), "same")

    def folder(self, rng, folder, where):
        shown = [file for file in sorted(Path(folder).iterdir()) if file.suffix in (".json", ".txt")]
        where += "".join(f"\n{file.name}: {file.read_text('utf-8', 'replace')[:2500]}" for file in shown)
        ours = self.posenc.ask(folder=folder)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        except Exception as error:  # noqa: B902
            return "both refuse" if "error" in ours else f"only transformers refuses: {type(error).__name__}"
        if "error" in ours:
            self.assertRegex(ours["error"], REFUSED, where)
            return "only posenc refuses"
        self.assertEqual(ours["settings"], folder_cases.settings_of(tokenizer), where)
        added = {name: {key: token[key] for key in ("content", "single_word", "lstrip", "rstrip")} for name, token in ours["python"]["added"].items()}
        self.assertEqual(added, {str(i): flags(token) for i, token in tokenizer.added_tokens_decoder.items()}, where)
        tokens = [token.content for token in tokenizer.added_tokens_decoder.values()]
        for _ in range(4):
            self.text(rng, tokenizer, tokens, where)
        return "same"

    def text(self, rng, tokenizer, tokens, where):
        text, pair = python_cases.text(rng, tokens), python_cases.text(rng, tokens) if rng.random() < 0.4 else None
        target = rng.random() < 0.2
        options = {"add_special_tokens": rng.random() < 0.8}
        question = {"encode": text, "pair": pair, "special": options["add_special_tokens"], "target": target}
        if rng.random() < 0.4:
            strategy = rng.choice(["longest_first", "only_first", "only_second"])
            options |= {"truncation": strategy, "max_length": rng.randint(1, 12)}
            question["truncation"] = {"strategy": strategy, "max_length": options["max_length"], "stride": 0, "direction": tokenizer.truncation_side}

        def encoded():
            given = {"text_target": text, "text_pair_target": pair} if target else {"text": text, "text_pair": pair}
            return tokenizer(**given, **options, return_token_type_ids=True, return_special_tokens_mask=True)

        theirs = cases.without_panics(encoded)
        if "error" not in theirs and None in theirs["input_ids"]:  # of which no tensor can be made
            theirs = {"error": "a token without an id"}
        ours = self.posenc.ask(**question)
        where = f"{question}\nposenc: {ours}\npackage: {theirs}\n{where}"
        if "error" in theirs or "error" in ours:
            if "error" not in theirs:  # transformers then leaves more tokens than were asked for, or removes all
                self.assertRegex(ours["error"], "max_length|OnlySecond|has no unknown one", where)
            self.assertIn("error", ours, where)
            return
        row = ours["rows"][0]
        self.assertEqual(row["ids"], theirs["input_ids"], where)
        types = theirs["token_type_ids"]  # too many where an end was there already
        self.assertEqual(row["type_ids"], types[: len(row["ids"])], where)
        mask = theirs["special_tokens_mask"]
        if len(mask) == len(row["ids"]):  # else the package forgets that it has not repeated the end
            self.assertEqual(row["special_tokens_mask"], mask, where)
        if not (target or pair is not None or options["add_special_tokens"] or "truncation" in options):
            self.assertEqual(row.get("tokens", []), tokenizer.tokenize(text), where)
        ids = row["ids"]
        if rng.random() < 0.5:
            ids = [rng.choice([rng.randrange(min(len(tokenizer), 300)), rng.choice(list(tokenizer.added_tokens_decoder))]) for _ in range(rng.randint(0, 9))]
        for skip in (False, True):
            # Marian's targets are joined by target.spm, as with this option of transformers 5.
            more = {"use_source_tokenizer": False} if type(tokenizer).__name__ == "MarianTokenizer" else {}
            theirs = cases.without_panics(lambda: {"text": tokenizer.decode(ids, skip_special_tokens=skip, **more)})
            ours = self.posenc.ask(decode=ids, skip=skip)
            if "error" in theirs or "error" in ours:
                self.assertTrue("error" in ours and "error" in theirs, f"{ids} skip {skip}: {ours} {theirs}\n{where}")
            else:
                self.assertEqual(ours["text"], theirs["text"], f"{ids} skip {skip}\n{where}")
                self.stream(ids, skip, tokenizer, where)

    def stream(self, ids, skip, tokenizer, where):
        """The pieces of a stream and its end are together the text, but for blanks at its ends and changes to a whole text."""
        # With these a token changes the text before it, as @@ of PhoBERT; their models generate nothing.
        changing = type(tokenizer).__name__.startswith(("CTRL", "Phobert", "Siglip", "Speech2Text"))
        if changing or getattr(tokenizer, "clean_up_tokenization_spaces", False):
            return
        whole, found = self.posenc.ask(decode=ids, skip=skip)["text"], self.posenc.ask(stream=ids, skip=skip)
        if "error" not in found:  # a token that changes the text before it
            self.assertEqual("".join(filter(None, found["steps"])) + found["end"], whole, f"{ids} skip {skip}: {found}\n{where}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--folders", type=int, default=25)
    parser.add_argument("--only")
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
