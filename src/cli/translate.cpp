// posenc translate: translates lines of text with an encoder-decoder in the Hugging Face format.

#include <memory>
#include <utility>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/translate/translate_lines.h"
#include "cli/usage.h"

namespace posenc::cli {

namespace {

void add_translate(CLI::App& app) {
  auto options = std::make_shared<TranslateOptions>();
  auto* sub = app.add_subcommand(
      "translate",
      "Translate lines of text with an encoder-decoder from Hugging Face, such as those of Opus-MT "
      "and NLLB, from a folder with config.json, safetensors or pytorch_model.bin, and a "
      "tokenizer's files. Each input line gives one output line, in the same order; an empty line "
      "stays empty.");
  auto* folder = sub->add_option("MODEL_DIR", options->folder, "the folder of the model");
  folder->check(input_path());
  auto* file =
      sub->add_option("FILE", options->file, "text file in UTF-8; default, or -: standard input");
  file->check(input_path());
  auto* model = sub->add_option("--model", options->model,
                                "the folder of the model, in place of MODEL_DIR: FILE is then the "
                                "only argument");
  model->check(input_path());
  sub->add_option(
         "--beams", options->search.beams,
         "number of beams; 1: greedy search; neither samples; default: the model's setting")
      ->check(integer(1, kMostBeams));
  sub->add_option("--max-length", options->search.max_length,
                  "maximum number of tokens in a translation; default: the model's setting")
      ->check(integer(1));
  auto* n_best = sub->add_option(
      "--n-best", options->search.n_best,
      "number of translations of each line, best first, each as LINE, SCORE and TEXT separated by "
      "tabs; uses at least as many beams, or samples where the model's settings have do_sample");
  n_best->check(integer(1, kMostBeams));
  sub->add_option("--batch", options->search.batch,
                  "number of source tokens in a batch; larger batches need more memory")
      ->capture_default_str()
      ->check(integer(1));
  add_threads(*sub);
  sub->add_option("--src-lang", options->search.src_lang,
                  "language of the lines, as the model's tokenizer spells it: eng_Latn, en_XX or "
                  "en; default: the folder's");
  sub->add_option(
      "--tgt-lang", options->search.tgt_lang,
      "language of the translations: fra_Latn, fr_XX, fr or fra; default: the folder's. With "
      "Marian "
      "models, a line that begins with a language of its own, such as >>fra<<, keeps it");
  sub->add_option("--prefix", options->search.prefix,
                  "text before each line, such as a task of T5: \"translate English to German: \"");
  sub->add_option("--target-prefix", options->search.target_prefix,
                  "text that each translation begins with");
  auto* json = sub->add_flag("--json")->description(
      "write a JSON object for each line, with `line` and `translations`, best first, each with "
      "`text` and `score`");
  auto* alignments =
      sub->add_flag("--alignments")
          ->description(
              "with --json, also write `source_ids`, and for each translation its `ids` and "
              "`alignment`: "
              "the place in `source_ids` of the token that each of them attends to most");
  alignments->needs(json);
  add_freezing(*sub, options->freezing);
  add_allow_unexpected(*sub, options->load);
  sub->add_flag(
      "--truncate", options->truncate,
      "truncate lines that are too long for the model, with a warning, instead of failing");
  sub->footer(
      "Example:\n  posenc translate opus-mt-en-de letter.txt > brief.txt\n"
      "  echo 'How are you?' | posenc translate opus-mt-en-de --beams 4\n"
      "  posenc translate nllb letter.txt --src-lang eng_Latn --tgt-lang fra_Latn --json");
  sub->callback([options, folder, file, model, n_best, json, alignments] {
    if (model->count() > 0) {
      if (file->count() > 0) fail_usage("--model and MODEL_DIR exclude each other");
      options->file = std::exchange(options->folder, options->model);
    } else if (folder->count() == 0) {
      fail_usage("MODEL_DIR is required");
    }
    if (n_best->count() > 0) options->format = LineFormat::Scores;
    if (json->count() > 0) options->format = LineFormat::Json;
    options->search.alignments = alignments->count() > 0;
    if (options->search.alignments) options->format = LineFormat::AlignedJson;
    translate_lines(*options);
  });
}

const Command kTranslate{13, add_translate};

}  // namespace
}  // namespace posenc::cli
