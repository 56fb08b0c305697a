// posenc classify and posenc fill: labels of texts, and words for masks.

#include <memory>

#include "cli/arguments.h"
#include "cli/classify_lines.h"
#include "cli/command.h"

namespace posenc::cli {
namespace {

constexpr int64_t kMostTexts = 1 << 20;
constexpr const char* kTextFile =
    "text file in UTF-8, a text a line; default, or -: standard input";
constexpr const char* kModelDir =
    "folder with config.json, the weights and the tokenizer's files, as transformers saves them";

}  // namespace

void add_classify(CLI::App& app) {
  auto options = std::make_shared<ClassifyOptions>();
  auto* sub = app.add_subcommand(
      "classify",
      "Write the labels of each line of text, or of its tokens, as the pipelines of Hugging Face's "
      "transformers and the cross-encoders of sentence-transformers give them.");
  sub->add_option("MODEL_DIR", options->folder, kModelDir)->required()->check(input_path());
  sub->add_option("--text", options->file, kTextFile)->check(input_path());
  sub->add_flag("--pair", options->pair, "each line has two texts, separated by a tab");
  add_prompt_options(*sub, options->prompt, "each line, of a pair before the first text");
  sub->add_option("--batch", options->batch, "number of texts that are encoded at a time")
      ->capture_default_str()
      ->check(whole(1, kMostTexts));
  sub->footer(
      "Example:\n  posenc classify models/emotions --text lines.txt\n"
      "  posenc classify models/reranker --pair --text pairs.txt");
  sub->callback([options] { classify_lines(*options); });
}

void add_fill(CLI::App& app) {
  auto options = std::make_shared<FillOptions>();
  auto* sub = app.add_subcommand(
      "fill", "Write the most probable tokens for each mask token in each line of text.");
  sub->add_option("MODEL_DIR", options->folder, kModelDir)->required()->check(input_path());
  sub->add_option("--text", options->file, kTextFile)->check(input_path());
  sub->add_option("--top", options->top, "number of tokens for each mask")
      ->capture_default_str()
      ->check(whole(1, kMostTexts));
  sub->footer("Example:\n  posenc fill models/bert-base-uncased --text lines.txt");
  sub->callback([options] { fill_lines(*options); });
}

}  // namespace posenc::cli
