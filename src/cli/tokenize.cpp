// posenc tokenize and posenc detokenize: text to ids and back.

#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/tokenize_lines.h"

namespace posenc::cli {
namespace {

constexpr const char* kTokenizer =
    "folder of a model with its tokenizer's files, as transformers saves them, or a tokenizer.json";

void add_tokenize(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  auto* sub = app.add_subcommand(
      "tokenize",
      "Write the ids of each line of text, as the tokenizer of a Hugging Face model gives them.");
  sub->add_option("MODEL_DIR", options->folder, kTokenizer)->required()->check(input_path());
  sub->add_option("FILE", options->file, "text file in UTF-8; default, or -: standard input")
      ->check(input_path());
  sub->add_flag("--pair", options->pair, "each line has two texts, separated by a tab");
  sub->add_flag("--no-special", options->no_special,
                "without the special tokens that the model expects");
  sub->add_option("--max-length", options->max_length,
                  "truncate to this number of tokens, special ones included")
      ->check(integer(1));
  auto* count = sub->add_flag("--count", options->count, "write the number of tokens of each line");
  sub->add_flag(
         "--json", options->json,
         "write an object for each line: `ids`, `tokens`, `type_ids`, `mask` and `offsets`, the "
         "begin and end of each token in characters")
      ->excludes(count);
  sub->footer("Example:\n  posenc tokenize models/bert-base-uncased lines.txt --json");
  sub->callback([options] { tokenize_lines(*options); });
}

void add_detokenize(CLI::App& app) {
  auto options = std::make_shared<DetokenizeOptions>();
  auto* sub = app.add_subcommand("detokenize", "Write the text of each line of ids.");
  sub->add_option("MODEL_DIR", options->folder, kTokenizer)->required()->check(input_path());
  sub->add_option("FILE", options->file, "ids separated by blanks; default, or -: standard input")
      ->check(input_path());
  sub->add_flag("--keep-special", options->keep_special, "also write special tokens");
  sub->footer("Example:\n  posenc detokenize models/bert-base-uncased ids.txt");
  sub->callback([options] { detokenize_lines(*options); });
}

const Command kTokenize{10, add_tokenize};
const Command kDetokenize{11, add_detokenize};

}  // namespace
}  // namespace posenc::cli
