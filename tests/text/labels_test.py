#!/usr/bin/env python3
"""`posenc classify` and `fill` beside the pipelines of transformers, on small random models. All types of models and tokenizers are in
tests/differential/labels.py.

    tests/text/labels_test.py --posenc build/release/posenc [--seed N]
"""

import json
import sys

import torch
import transformers
from model_lines import SEE_PADDING, VOCAB, WIDTH, ModelLines, main, write_json


class Labels(ModelLines):
    def test_labels_of_sequences(self):
        for labels in (1, 3):
            problem = self.rng.choice([None, "multi_label_classification", "regression"])
            folder, _, tokenizer = self.model("BertForSequenceClassification", num_labels=labels, problem_type=problem)
            pipeline = transformers.pipeline("text-classification", str(folder), top_k=None, device="cpu")
            lines = self.lines(8)
            got = self.json_lines("classify", folder, "--text", self.file(lines), "--batch", self.rng.randint(1, 8))
            expected = [pipeline([line], truncation=True, max_length=self.limit(tokenizer))[0] for line in lines]
            self.assertEqual(len(got), len(lines))
            for ours, theirs in zip(got, expected):
                theirs = {one["label"]: one["score"] for one in theirs}
                self.assertEqual(set(ours["scores"]), set(theirs), self.seed)
                self.close(torch.tensor([ours["scores"][name] for name in theirs]), torch.tensor(list(theirs.values())))
                self.assertEqual(ours["label"], max(ours["scores"], key=ours["scores"].get))

    def test_pairs(self):
        folder, model, tokenizer = self.model("BertForSequenceClassification", num_labels=1)
        pairs = list(zip(self.lines(6), ["", *self.lines(5)]))
        write_json(folder / "config_sentence_transformers.json", {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.activation.Tanh",
                                                                  "prompts": {"query": "hello world "}, "default_prompt_name": "query"})  # fmt: skip
        file = self.file([f"{a}\t{b}" for a, b in pairs])
        for prompt, more in [("hello world ", []), ("", ["--prompt", ""]), ("the ", ["--prompt-text", "the "]), ("hello world ", ["--prompt", "query"])]:
            got = self.json_lines("classify", folder, "--pair", "--text", file, *more)
            self.assertEqual(len(got), len(pairs))
            for ours, (a, b) in zip(got, pairs):
                # A batch, as an empty second text is no pair in a call for one text.
                given = tokenizer([prompt + a], [b], truncation="longest_first", max_length=self.limit(tokenizer), return_tensors="pt")
                with torch.no_grad():
                    self.close(torch.tensor([ours["score"]]), model(**given).logits[0].tanh())

    def test_options_that_are_refused(self):
        tokens, _, _ = self.model("BertForTokenClassification", num_labels=3)
        texts, _, _ = self.model("BertForSequenceClassification", num_labels=3)
        for folder, more, rule in [
            (tokens, ["--prompt", "query"], "a prompt is not for it"),
            (tokens, ["--prompt-text", "a "], "a prompt is not for it"),
            (tokens, ["--pair"], "--pair is not for it"),
            (tokens, ["--top", "2"], "--top is not for it"),
            (tokens, ["--stride", "2"], "stride needs another aggregation than None"),
            (texts, ["--prompt", "query"], "must be one of the folder's (it has none). Got query"),
            (texts, ["--stride", "2"], "--aggregation and --stride are for labels of tokens"),
            (texts, ["--aggregation", "max"], "--aggregation and --stride are for labels of tokens"),
            (texts, ["--aggregation", "most"], "must be none or simple or first or average or max. Got most"),
        ]:
            self.assertEqual(self.refused(rule, "classify", folder, *more, given=""), "")  # before there is a text

    def test_models_with_another_head(self):
        """They are refused by config.json alone: there are no weights."""
        for command, name, rule in [
            ("fill", "BertForSequenceClassification", "posenc fill must be given a model with words for masks. Got one with labels for sequences"),
            ("fill", "BertForTokenClassification", "Got one with labels for tokens"),
            ("classify", "BertForMaskedLM", "posenc classify must be given a model with labels for sequences or labels for tokens. Got one with words for masks"),
            ("classify", "BertForQuestionAnswering", "Got one with answers to questions"),
            ("classify", "XLNetForMultipleChoice", "Got one with choices"),
            ("classify", "ViTForImageClassification", "Got one with labels for images"),
        ]:
            write_json(self.folder / name / "config.json", {"model_type": "bert", "architectures": [name]})
            self.assertEqual(self.refused(rule, command, self.folder / name, given="the cat\n"), "")

    def test_no_texts(self):
        for name in ("BertForSequenceClassification", "BertForTokenClassification", "BertForMaskedLM"):
            folder, _, _ = self.model(name)
            self.assertEqual(self.run_posenc("fill" if "Masked" in name else "classify", folder, given=""), "")

    def test_a_line_without_a_mask(self):
        folder, _, _ = self.model("BertForMaskedLM")
        lines = ["the [MASK]", "the cat", "[MASK]"]
        out = self.refused("line 2: [TextClassifier] a text must have a mask, [MASK]", "fill", folder, "--text", self.file(lines))
        self.assertEqual(len(out.splitlines()), 1)  # that before it

    def test_targets(self):
        folder, _, _ = self.model("BertForMaskedLM")
        pipeline = transformers.pipeline("fill-mask", str(folder), device="cpu")
        text = "the [MASK] on the"
        got = self.json_lines("fill", folder, "--target", "cat", "--target", "dog", "--text", self.file([text]))
        theirs = pipeline(text, targets=["cat", "dog"])
        self.assertEqual([one["id"] for one in got[0]["masks"][0]], [one["token"] for one in theirs])
        self.refused("targets must have a token of the vocabulary", "fill", folder, "--target", "", given="")

    def test_labels_of_tokens(self):
        folder, _, tokenizer = self.model("BertForTokenClassification", num_labels=3)
        pipeline = transformers.pipeline("token-classification", str(folder), ignore_labels=[], device="cpu")
        pipeline.tokenizer.model_max_length = self.limit(tokenizer)
        lines = self.lines(8)
        got = self.json_lines("classify", folder, "--text", self.file(lines))
        self.assertEqual(len(got), len(lines))
        for line, ours in zip(lines, got):
            theirs = pipeline(line)
            self.assertEqual([(one["label"], one["begin"], one["end"], one["text"]) for one in ours["tokens"]],
                             [(one["entity"], one["start"], one["end"], line[one["start"] : one["end"]]) for one in theirs], self.seed)  # fmt: skip
            self.close(torch.tensor([one["score"] for one in ours["tokens"]]), torch.tensor([float(one["score"]) for one in theirs]))

    def test_masks(self):
        folder, _, _ = self.model("BertForMaskedLM")
        pipeline = transformers.pipeline("fill-mask", str(folder), top_k=4, device="cpu")
        lines = ["the [MASK] Sat on the Mat", "hello [MASK] [MASK] .", "[MASK]"]
        got = self.json_lines("fill", folder, "--top", 4, "--text", self.file(lines))
        self.assertEqual(len(got), len(lines))
        for line, ours in zip(lines, got):
            theirs = pipeline(line)
            theirs = [theirs] if isinstance(theirs[0], dict) else theirs
            self.assertEqual([[(one["id"], one["token"]) for one in mask] for mask in ours["masks"]],
                             [[(one["token"], one["token_str"]) for one in mask] for mask in theirs], self.seed)  # fmt: skip
            self.close(torch.tensor([[one["score"] for one in mask] for mask in ours["masks"]]), torch.tensor([[one["score"] for one in mask] for mask in theirs]))

    def test_top_labels(self):
        folder, _, _ = self.model("BertForSequenceClassification", num_labels=4)
        file = self.file(self.lines(5))
        for all_labels, best in zip(self.json_lines("classify", folder, "--text", file), self.json_lines("classify", folder, "--text", file, "--top", 2)):
            expected = sorted(all_labels["scores"].items(), key=lambda one: -one[1])[:2]
            self.assertEqual(list(best["scores"].items()), expected)
            self.assertEqual((best["label"], best["score"]), expected[0])

    def test_lines_that_are_cut_are_counted(self):
        long, short = "the cat " * 30, "the cat"
        for name, command in [("BertForSequenceClassification", "classify"), ("BertForTokenClassification", "classify"), ("BertModel", "encode")]:
            folder, _, tokenizer = self.model(name)
            for lines, count in [([short, long, long], "2 lines were"), ([long], "1 line was"), ([short], "")]:
                note = f"posenc {command}: {count} cut to the {self.limit(tokenizer)} tokens that the model takes"
                more = ["--out", self.folder / "out.safetensors"] if command == "encode" else []
                self.run_posenc(command, folder, "--text", self.file(lines), *more)
                self.assertEqual([line for line in self.notes.splitlines() if " cut to " in line], [note] if count else [])

    def test_labels_in_8_bits(self):
        folder, _, _ = self.model("BertForSequenceClassification", num_labels=3)
        file = self.file(self.lines(5))
        exact, rounded = (self.json_lines("classify", folder, "--text", file, *more) for more in ([], ["--int8"]))
        self.assertNotEqual(exact, rounded)
        for one, other in zip(exact, rounded):
            for label, score in one["scores"].items():
                self.assertAlmostEqual(other["scores"][label], score, delta=0.2)

    def test_phrases(self):
        folder, _, tokenizer = self.model("BertForTokenClassification", id2label=dict(enumerate(["O", "B-PER", "I-PER", "LOC"])))
        pipeline = transformers.pipeline("token-classification", str(folder), device="cpu")
        pipeline.tokenizer.model_max_length = self.limit(tokenizer)
        lines = self.lines(8)
        for strategy in ("simple", "first", "average", "max"):
            for stride in (None, 3):
                more = [] if stride is None else ["--stride", stride]
                got = self.json_lines("classify", folder, "--text", self.file(lines), "--aggregation", strategy, *more)
                for line, ours in zip(lines, got):
                    theirs = pipeline(line, aggregation_strategy=strategy, stride=stride)
                    self.assertEqual([(one["label"], one["begin"], one["end"], one["text"]) for one in ours["tokens"]],
                                     [(one["entity_group"], one["start"], one["end"], line[one["start"] : one["end"]]) for one in theirs], self.seed)  # fmt: skip

    def test_tokens_without_offsets(self):
        """The pipeline has no begin and end for these, which a class in Python makes: the command once ended with a signal."""
        folder = self.folder / "esm"
        words = ["<cls>", "<pad>", "<eos>", "<unk>", "<mask>", *"ABCDE"]
        sizes = transformers.EsmConfig(hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24, vocab_size=len(words), pad_token_id=1,
                                       mask_token_id=4, max_position_embeddings=40, position_embedding_type="rotary", num_labels=3)  # fmt: skip
        transformers.EsmForTokenClassification(sizes).save_pretrained(folder)
        (folder / "vocab.txt").write_text("\n".join(words))
        transformers.EsmTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
        pipeline = transformers.pipeline("token-classification", str(folder), ignore_labels=[], device="cpu")
        lines = ["A B C", "E", "A ? D D"]
        for line, ours in zip(lines, self.json_lines("classify", folder, "--text", self.file(lines))):
            theirs = pipeline(line)
            self.assertEqual([(one["label"], one["begin"], one["end"], one["text"]) for one in ours["tokens"]],
                             [(one["entity"], one["start"], one["end"], one["word"]) for one in theirs])  # fmt: skip
        self.refused("aggregation must be None or Simple", "classify", folder, "--aggregation", "first", given="")
        self.refused("stride needs a tokenizer with offsets", "classify", folder, "--aggregation", "simple", "--stride", "1", given="")

    def test_pairs_without_token_types(self):
        """Where the tokenizer's file says that the model takes none, the second text has none."""
        folder, model, tokenizer = self.model("BertForSequenceClassification", num_labels=2)
        config = json.loads((folder / "tokenizer_config.json").read_text())
        write_json(folder / "tokenizer_config.json", config | {"model_input_names": ["input_ids", "attention_mask"]})
        pipeline = transformers.pipeline("text-classification", str(folder), top_k=None, device="cpu")
        pairs = list(zip(self.lines(6), self.lines(6)))
        got = self.json_lines("classify", folder, "--pair", "--text", self.file([f"{a}\t{b}" for a, b in pairs]))
        for ours, (a, b) in zip(got, pairs):
            theirs = {one["label"]: one["score"] for one in pipeline([{"text": a, "text_pair": b}], truncation=True, max_length=self.limit(tokenizer))[0]}
            self.close(torch.tensor([ours["scores"][name] for name in theirs]), torch.tensor(list(theirs.values())))

    def test_lines_of_unequal_length(self):
        """A line has the labels that it has alone, also where the model's tokens see padding."""
        for kind in SEE_PADDING:
            folder, _, tokenizer = self.model(f"{kind}ForSequenceClassification", num_labels=3)
            pipeline = transformers.pipeline("text-classification", str(folder), top_k=None, device="cpu")
            lines = ["the", "the cat sat on the mat", "hello", "a dog , a river ."]
            for line, ours in zip(lines, self.json_lines("classify", folder, "--text", self.file(lines))):
                theirs = {one["label"]: one["score"] for one in pipeline([line], truncation=True, max_length=self.limit(tokenizer))[0]}
                self.close(torch.tensor([ours["scores"][name] for name in theirs]), torch.tensor(list(theirs.values())))

    def test_decoders_pad_with_another_id(self):
        """Also with none, as config.json of many has it, and where the tokenizer has no token for it."""
        for pad in (None, 5, 0, -1):
            folder = self.folder / f"qwen3-{pad}"
            _, _, tokenizer = self.model("BertModel")
            sizes = transformers.Qwen3Config(hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=4, intermediate_size=24,
                                             vocab_size=len(VOCAB), pad_token_id=None if pad == -1 else pad, num_labels=3)  # fmt: skip
            model = transformers.Qwen3ForSequenceClassification(sizes).eval()
            with torch.no_grad():
                model.score.weight.mul_(20)
            model.save_pretrained(folder)
            if pad == -1:
                config = json.loads((folder / "config.json").read_text())
                write_json(folder / "config.json", config | {"pad_token_id": -1})
            tokenizer.save_pretrained(folder)
            if pad == 0:
                config = json.loads((folder / "tokenizer_config.json").read_text())
                write_json(folder / "tokenizer_config.json", {name: value for name, value in config.items() if name != "pad_token"} | {"pad_token": None})
            lines = ["the", "the cat sat on the mat", "hello", "a dog , a river ."]
            for batch in (1, 4):
                got = self.json_lines("classify", folder, "--text", self.file(lines), "--batch", batch)
                for line, ours in zip(lines, got):
                    given = tokenizer(line, return_tensors="pt", return_token_type_ids=False)
                    with torch.no_grad():
                        self.close(torch.tensor(list(ours["scores"].values())), model(**given).logits[0].softmax(-1))


if __name__ == "__main__":
    sys.exit(main())
