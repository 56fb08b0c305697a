// posenc merge and posenc adapter: adapters of PEFT as models, and written again.

#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/print.h"
#include "posenc/models/lora.h"

namespace posenc::cli {
namespace {

struct AdapterArguments {
  std::string folder, output;
  LoadOptions load;
};

void merge(const AdapterArguments& arguments) {
  const MergedFolder merged = merge_adapters(arguments.folder, arguments.output, arguments.load);
  print("{}: a model with {} changed tensors\n", arguments.output, merged.changed);
  if (merged.untied.empty()) return;
  print_error(
      "posenc merge: the adapter changes the table of tokens, to which the output layer was tied: "
      "{} has the base's values, and config.json tie_word_embeddings false\n",
      listed(merged.untied));
}

void add_merge(CLI::App& app) {
  auto arguments = std::make_shared<AdapterArguments>();
  auto* sub = app.add_subcommand(
      "merge",
      "Write the folder of a model into which adapters of PEFT are merged, for posenc and "
      "transformers, with its tokenizer and stages.");
  sub->add_option("MODEL_DIR", arguments->folder,
                  "folder with config.json and the weights, or of an adapter")
      ->required()
      ->check(input_path());
  sub->add_option("OUT_DIR", arguments->output, "folder for the model, which must not be there")
      ->required()
      ->check(output_folder());
  add_adapters(*sub, arguments->load);
  sub->footer(
      "Example:\n  posenc merge models/bert-base-uncased models/merged --adapter "
      "adapters/sentiment");
  sub->callback([arguments] { merge(*arguments); });
}

void add_adapter(CLI::App& app) {
  auto arguments = std::make_shared<AdapterArguments>();
  auto* sub = app.add_subcommand(
      "adapter",
      "Read an adapter of PEFT onto its model, which checks every name and shape, and write it as "
      "PEFT does.");
  sub->add_option("MODEL_DIR", arguments->folder,
                  "folder with config.json and the weights, or of an adapter")
      ->required()
      ->check(input_path());
  sub->add_option("--out", arguments->output, "folder for the adapter, which must hold none")
      ->required()
      ->check(output_folder());
  add_adapters(*sub, arguments->load);
  sub->footer(
      "Example:\n  posenc adapter models/bert-base-uncased --adapter adapters/old --out "
      "adapters/new");
  sub->callback([arguments] {
    rewrite_adapter(arguments->folder, arguments->output, arguments->load);
    print("{}: an adapter\n", arguments->output);
  });
}

const Command kMerge{16, add_merge};
const Command kAdapter{18, add_adapter};

}  // namespace
}  // namespace posenc::cli
