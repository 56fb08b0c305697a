// posenc generate: sequences of a language model in a folder, with safetensors as input and output,
// or lines of text.

#include <ATen/core/grad_mode.h>

#include <memory>
#include <utility>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/generate_parts.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/set_option.h"
#include "cli/usage.h"
#include "cli/weights.h"
#include "posenc/models/decoder.h"
#include "posenc/models/inspect_folder.h"
#include "posenc/weights/save.h"

namespace posenc::cli {
namespace {

constexpr int64_t kMostTextsAtATime = 1 << 20;

SettingOverrides overrides_in(const std::vector<std::string>& settings) {
  SettingOverrides overrides;
  for (auto& [name, value] : settings_in(settings))
    overrides[name] = {value, "--set " + shown(name)};
  return overrides;
}

void generate_tensors(const GenerateArguments& arguments, bool has_encoder,
                      const SettingOverrides& overrides) {
  const at::NoGradGuard no_grad;
  const StateDict given = read_tensors(arguments.input, {});
  const StateDict result = has_encoder ? generate_targets(arguments, given, overrides)
                                       : continue_prompts(arguments, given, overrides);
  save_tensors(arguments.output, result);
  print("{}: {}\n", arguments.output, described(result));
}

void generate(const GenerateArguments& arguments) {
  const SettingOverrides overrides = overrides_in(arguments.settings);
  const bool has_tensors = !arguments.input.empty();
  if (has_tensors) check_output(arguments.output, {arguments.folder, arguments.input});
  const FolderInfo folder = inspect_folder(arguments.folder);
  const bool has_encoder = folder.is_encoder_decoder;
  if (has_tensors) return generate_tensors(arguments, has_encoder, overrides);
  if (has_encoder)
    fail("{} is {}", arguments.folder,
         folder.is_of_speech ? "a model of speech, whose sources are no tokens: posenc transcribe"
                             : "an encoder-decoder: posenc translate reads lines of text");
  continue_lines(arguments, overrides);
}

// The options of --text.
std::vector<CLI::Option*> add_text_options(CLI::App& sub, GenerateArguments& arguments) {
  auto* chat = sub.add_flag(
      "--chat", arguments.chat,
      "each line is a message of the user, or a conversation as a list of messages in JSON, which "
      "begins with [{; the folder's chat template writes the prompt");
  auto* variables = sub.add_option(
      "--chat-template-kwargs", arguments.chat_variables,
      "what else the chat template may name, as an object of JSON: {\"enable_thinking\": false}, "
      "`tools`");
  variables->needs(chat);
  return {
      chat,
      sub.add_option("--stop", arguments.stop_strings,
                     "end a text with the token that completes this string; repeatable")
          ->allow_extra_args(false),
      sub.add_option("--batch", arguments.batch, "number of prompts that are continued at a time")
          ->check(integer(1, kMostTextsAtATime)),
  };
}

void add_generate(CLI::App& app) {
  auto arguments = std::make_shared<GenerateArguments>();
  auto* sub = app.add_subcommand(
      "generate",
      "Continue prompts with a decoder-only language model of Hugging Face's transformers, or "
      "generate targets with an encoder-decoder.");
  sub->add_option(
         "MODEL_DIR", arguments->folder,
         "folder with config.json and the weights, as save_pretrained() writes it, or what "
         "posenc freeze wrote of it")
      ->required()
      ->check(input_path());
  auto* in = sub->add_option(
      "--in", arguments->input,
      "safetensors with `input_ids` (B, S), and optionally `attention_mask`, nonzero for tokens; "
      "of an encoder-decoder also `decoder_input_ids` (B, P), which begin the targets, and "
      "`decoder_attention_mask`, all int64");
  in->check(input_path());
  auto* out = sub->add_option(
      "--out", arguments->output,
      "safetensors for `sequences` (B * R, T) and, of a beam search, `sequences_scores` (B * R); "
      "torch.save's format for .pt and .pth");
  out->check(output_path())->needs(in);
  in->needs(out);
  auto* text = sub->add_option(
      "--text", arguments->text,
      "text file in UTF-8, a prompt a line; -: standard input. Prints for each line, and each "
      "sequence of it, a JSON object with the `ids` that were generated, their `text`, and of a "
      "beam search the `score`");
  text->check(input_path())->excludes(in);
  auto* set = sub->add_option("--set", arguments->settings,
                              "a setting of transformers' generate(), with a value in JSON, which "
                              "replaces the folder's; null removes it; repeatable");
  set->check(assignment())->allow_extra_args(false);
  auto* plain = sub->add_flag("--plain", arguments->plain, "use the modules, not the frozen model");
  plain->excludes(text);
  add_threads(*sub);
  for (auto* option : add_freezing(*sub, arguments->freezing)) option->excludes(plain);
  add_allow_unexpected(*sub, arguments->load);
  auto* attention = sub->add_flag(
      "--attention", arguments->attention,
      "of an encoder-decoder also write `attention` (B * R, T, S): the weights of the last layer's "
      "attention to the source for each token, averaged over the heads");
  auto* coverage =
      sub->add_option("--coverage-penalty", arguments->coverage_penalty,
                      "GNMT's penalty of source tokens that are attended to by few of the target's")
          ->check(real(0.0));
  auto* seed = sub->add_option("--seed", arguments->seed,
                               "of the samples of do_sample, which then are the same each time")
                   ->check(integer(0));
  sub->add_flag(
         "--logits", arguments->logits,
         "write only `logits` (B, S, V) and `last_hidden_state` (B, S, D) of `input_ids`; of "
         "an encoder-decoder `logits` (B, P, V) of `decoder_input_ids`, each after those "
         "before it")
      ->needs(in)
      ->excludes(set)
      ->excludes(attention)
      ->excludes(coverage)
      ->excludes(seed);
  for (auto* option : add_text_options(*sub, *arguments)) option->needs(text);
  sub->footer(
      "Models:\n" + listed(decoder_model_types()) +
      "\nExample:\n  echo 'The cat sat on' | posenc generate models/gpt2 --text -\n"
      "  echo 'Where is the cat?' | posenc generate models/Qwen3-0.6B --text - --chat\n  posenc "
      "generate "
      "models/opus-mt-en-de --in ids.safetensors --out found.safetensors --set num_beams=4 --set "
      "max_new_tokens=40");
  sub->callback([arguments, in, text] {
    if (in->count() == 0 && text->count() == 0) fail_usage("--in or --text is required");
    generate(*arguments);
  });
}

const Command kGenerate{12, add_generate};

}  // namespace
}  // namespace posenc::cli
