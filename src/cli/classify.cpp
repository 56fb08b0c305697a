// posenc classify and posenc fill: labels of texts, and words for masks.

#include <memory>

#include "cli/arguments.h"
#include "cli/classify_lines.h"
#include "cli/command.h"
#include "cli/prompt_options.h"

namespace posenc::cli {
namespace {

constexpr int64_t kMostTexts = 1 << 20;
constexpr const char* kTextFile =
    "text file in UTF-8, a text a line; default, or -: standard input";
constexpr const char* kModelDir =
    "folder with config.json, the weights and the tokenizer's files, as transformers saves them, "
    "or "
    "what posenc freeze wrote of it";

using labels::Aggregation;

constexpr std::pair<const char*, Aggregation> kAggregations[] = {{"none", Aggregation::None},
                                                                 {"simple", Aggregation::Simple},
                                                                 {"first", Aggregation::First},
                                                                 {"average", Aggregation::Average},
                                                                 {"max", Aggregation::Max}};

void add_aggregation(CLI::App& sub, Aggregation& aggregation) {
  add_choice(sub, "--aggregation", kAggregations, aggregation,
             "join labels of tokens: neighbours of one label (simple), after each word has the "
             "label of its first token, of the mean of its tokens, or of the most certain one; "
             "without tokens labelled O; default: none");
}

void add_batch(CLI::App& sub, int64_t& batch) {
  sub.add_option("--batch", batch, "number of texts that are encoded at a time")
      ->capture_default_str()
      ->check(integer(1, kMostTexts));
}

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
  sub->add_option("--top", options->top, "number of labels, best first; default: all")
      ->check(integer(1, kMostTexts));
  add_aggregation(*sub, options->aggregation);
  sub->add_option("--stride", options->stride,
                  "with --aggregation: read lines that are too long for the model in windows, each "
                  "of which repeats this number of tokens, instead of cutting them")
      ->check(integer(0));
  add_batch(*sub, options->batch);
  add_threads(*sub);
  add_freezing(*sub, options->freezing);
  add_allow_unexpected(*sub, options->load);
  add_adapters(*sub, options->load);
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
      ->check(integer(1, kMostTexts));
  sub->add_option("--target", options->targets,
                  "consider this token only, or these, if it is given several times")
      ->allow_extra_args(false);
  add_batch(*sub, options->batch);
  add_threads(*sub);
  add_freezing(*sub, options->freezing);
  add_allow_unexpected(*sub, options->load);
  add_adapters(*sub, options->load);
  sub->footer("Example:\n  posenc fill models/bert-base-uncased --text lines.txt");
  sub->callback([options] { fill_lines(*options); });
}

const Command kClassify{8, add_classify};
const Command kFill{9, add_fill};

}  // namespace
}  // namespace posenc::cli
