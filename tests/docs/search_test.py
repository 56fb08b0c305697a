#!/usr/bin/env python3
"""What a reader types into the search of the reference leads to the page that answers it.

tests/docs/search_test.py FOLDER      which tools/reference.sh has written

docs/doxygen/search.js itself searches, run by Node. Without that, or without a reference, since Doxygen is not installed,
the test is skipped.
"""

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from reference_pages import versions  # noqa: E402

SEARCH = """
const {find} = require(process.argv[1]);
const index = new Function(require("fs").readFileSync(process.argv[2], "utf8") + "return POSENC_INDEX;")();
const queries = JSON.parse(process.argv[3]);
console.log(JSON.stringify(queries.map((query) => find(index, query).map((found) => [found.title, found.place]))));
"""
# What is typed: an entry that is among the first five, by its title.
FOUND = {
    "sentence": "Sentence vectors",
    "sentences": "Sentence vectors",
    "padding": "key_padding",
    "mean pooling": "mean_pool",
    "padding mask": "key_padding",
    "token embedding": "TokenEmbedding",
    "TokenEmbedding": "TokenEmbedding",
    "tokenembedding": "TokenEmbedding",
    "load_encoder": "load_encoder",
    "beam search": "Decoding: greedy search, beam search and sampling",
    "learning rate": "LearningRateFactor",
    "vision": "Vision embeddings",
    "rotary": "Rotary embeddings",
    "checkpoint": "Weights and checkpoints",
    "gpu": "GPUs",
    "language model": "Decoder-only language models: continuing text",
    "llama": "Llama",
}


class Search(unittest.TestCase):
    pages: Path  # of the newest version

    def found(self, queries):
        command = ["node", "-e", SEARCH, str(ROOT / "docs/doxygen/search.js"), str(self.pages / "search_index.js")]
        run = subprocess.run([*command, json.dumps(queries)], capture_output=True, text=True, check=True)
        return json.loads(run.stdout)

    def test_words_lead_to_the_pages_that_explain_them(self):
        for (query, expected), entries in zip(FOUND.items(), self.found(list(FOUND))):
            with self.subTest(query):
                self.assertIn(expected, [title for title, _ in entries[:5]])

    def test_a_name_is_the_first_entry(self):
        names = ["TokenEmbedding", "KeyValueCache", "mean_pool", "load_weights", "FusedAdam"]
        self.assertEqual([entries[0][0] for entries in self.found(names)], names)

    def test_all_words_have_to_be_found(self):
        nothing, some, letters = self.found(["sentence zebra", "sentence vectors", "..."])
        self.assertEqual((nothing, letters), ([], []))
        self.assertEqual(some[0], ["Sentence vectors", "Encoders: BERT and similar models"])


if __name__ == "__main__":
    folder = Path(sys.argv.pop())
    found = versions(folder)
    if not shutil.which("node") or not found:
        print("search: skipped, there is no Node, or no reference")
        sys.exit(77)
    Search.pages = folder / found[0]
    unittest.main()
