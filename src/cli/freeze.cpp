// posenc freeze: a folder with a frozen model in place of a folder with weights.

#include <filesystem>
#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/weights.h"
#include "posenc/models/frozen_file.h"

namespace posenc::cli {
namespace {

struct FreezeArguments {
  std::string folder, output;
  FreezeOptions freezing;
  LoadOptions load;
  bool without_head = false;
};

void freeze_model(const FreezeArguments& arguments) {
  LoadReport report;
  freeze_folder(arguments.folder, arguments.output, arguments.freezing,
                LoadOptions(arguments.load).report(&report), !arguments.without_head);
  note_unexpected("freeze", report);
  print("{}: a frozen model\n", arguments.output);
}

void add_freeze(CLI::App& app) {
  auto arguments = std::make_shared<FreezeArguments>();
  auto* sub = app.add_subcommand(
      "freeze",
      "Write a folder with a frozen model, which starts at once: encode, classify, fill, generate "
      "and translate take it in place of the model's own, and map its weights, which processes "
      "then share.");
  sub->add_option("MODEL_DIR", arguments->folder,
                  "folder with config.json and the weights, as save_pretrained() writes it, or a "
                  "model of sentence-transformers")
      ->required()
      ->check(input_path());
  sub->add_option("OUT_DIR", arguments->output,
                  "folder for the frozen model, the settings and the tokenizer; made if it is not "
                  "there; an earlier frozen model in it is replaced")
      ->required()
      ->check(output_folder());
  add_threads(*sub);
  add_freezing(*sub, arguments->freezing);
  sub->add_flag("--without-head", arguments->without_head,
                "the encoder alone, for encode; default: with the head that config.json names, or "
                "the output layer of a language model");
  add_allow_unexpected(*sub, arguments->load);
  add_adapters(*sub, arguments->load);
  sub->footer(
      "Example:\n  posenc freeze models/all-MiniLM-L6-v2 frozen/all-MiniLM-L6-v2 --int8\n"
      "  posenc encode frozen/all-MiniLM-L6-v2 --text lines.txt --out vectors.safetensors");
  sub->callback([arguments] { freeze_model(*arguments); });
}

const Command kFreeze{14, add_freeze};

}  // namespace
}  // namespace posenc::cli
