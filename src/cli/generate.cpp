// posenc-budget: one command: the tensors that come in, the search, those that go out
// posenc generate: targets of an encoder-decoder in a folder, with safetensors as input and output.

#include "models/frozen/frozen_folder.h"
#include "models/seq2seq/generation_config.h"
#include "models/seq2seq/load.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/usage.h"
#include "cli/weights.h"
#include "posenc/inference/freeze.h"
#include "posenc/inference/generate.h"
#include "posenc/weights/save.h"

namespace posenc::cli {
namespace {

struct GenerateArguments {
  std::string folder, input, output;
  std::vector<std::string> settings;
  FreezeOptions freezing = {};
  LoadOptions load = {};
  bool plain = false, logits = false, attention = false;
  double coverage_penalty = 0.0;
  std::optional<uint64_t> seed;
};

using Tokens = std::vector<int64_t>;

// A tensor (B, L) of the input: integers.
at::Tensor ids_in(const StateDict& given, const char* name, int64_t rows) {
  const at::Tensor ids = given[name];
  if (ids.dim() != 2 || ids.scalar_type() != at::kLong)
    fail("`{}` must be int64 (B, L); it is {} {}", name, dtype_text(ids), shape_of(ids));
  if (rows >= 0 && ids.size(0) != rows)
    fail("`{}` must have the {} rows of `input_ids`; it is {}", name, rows, shape_of(ids));
  return ids.contiguous();
}

at::Tensor mask_in(const StateDict& given, const char* name, const at::Tensor& ids,
                   const char* of) {
  if (!given.contains(name)) return at::ones_like(ids);
  const at::Tensor mask = ids_in(given, name, -1);
  if (mask.sizes() != ids.sizes())
    fail("`{}` must have the shape of `{}`, {}; it is {}", name, of, shape_of(ids), shape_of(mask));
  return mask;
}

// Sources, and the tokens that begin their targets.
struct GenerateInputs {
  at::Tensor src, src_mask;
  at::Tensor prefix, prefix_mask;  // (B, P) as given; undefined if they are not
};

GenerateInputs inputs_in(const StateDict& given, const std::string& path) {
  refuse_unknown(given, path, "an encoder-decoder",
                 {"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask"});
  if (!given.contains("input_ids"))
    fail("{} must have a tensor `input_ids`, the ids of tokens (B, S); it contains {}", path,
         described(given));
  GenerateInputs inputs;
  inputs.src = ids_in(given, "input_ids", -1);
  inputs.src_mask = mask_in(given, "attention_mask", inputs.src, "input_ids");
  if (!given.contains("decoder_input_ids")) {
    if (given.contains("decoder_attention_mask"))
      fail("{}: `decoder_attention_mask` needs `decoder_input_ids`", path);
    return inputs;
  }
  inputs.prefix = ids_in(given, "decoder_input_ids", inputs.src.size(0));
  if (inputs.prefix.size(1) == 0)
    fail("`decoder_input_ids` must have at least one column; it is {}", shape_of(inputs.prefix));
  inputs.prefix_mask = mask_in(given, "decoder_attention_mask", inputs.prefix, "decoder_input_ids");
  return inputs;
}

// The layers would refuse them too, but do not know the tensor's name.
void check_ids(const at::Tensor& ids, const char* name, int64_t vocab, int64_t most) {
  if (ids.size(1) > most)
    fail("`{}` must have at most the model's {} positions; it is {}", name, most, shape_of(ids));
  const auto* const first = ids.const_data_ptr<int64_t>();
  const auto* const end = first + ids.numel();
  const auto* const outside =
      std::find_if(first, end, [&](int64_t id) { return id < 0 || id >= vocab; });
  if (outside == end) return;
  const int64_t index = outside - first;
  fail("`{}` must have ids in [0, {}), the model's vocabulary. Got {} at index [{}, {}]", name,
       vocab, *outside, index / ids.size(1), index % ids.size(1));
}

// The number of columns before the first that counts, for each row of the prefix.
std::vector<int64_t> padding_of(const at::Tensor& mask) {
  std::vector<int64_t> padding;
  for (int64_t row = 0; row < mask.size(0); ++row) {
    const auto* const of_row = mask.const_data_ptr<int64_t>() + row * mask.size(1);
    const auto* const end = of_row + mask.size(1);
    const auto* const first = std::find_if(of_row, end, [](int64_t x) { return x != 0; });
    if (first == end || std::find(first, end, 0) != end)
      fail(
          "row {} of `decoder_attention_mask` must be zeros and then ones, at least one of them: "
          "prefixes are padded on the left",
          row);
    padding.push_back(first - of_row);
  }
  return padding;
}

Tokens row_of(const at::Tensor& ids, int64_t row) {
  const auto* const first = ids.const_data_ptr<int64_t>() + row * ids.size(1);
  return {first, first + ids.size(1)};
}

SettingOverrides overrides_in(const std::vector<std::string>& settings) {
  SettingOverrides overrides;
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    const std::string name = setting.substr(0, equals), text = setting.substr(equals + 1);
    if (overrides.contains(name)) fail_usage("--set {} must be given once", shown(name));
    auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded())
      fail_usage("--set {}: the value must be JSON, such as 4, true, null or [[5], [7, 8]]. Got {}",
                 shown(name), shown(text));
    overrides[name] = {std::move(value), "--set " + shown(name)};
  }
  return overrides;
}

// The token that begins the target of a row.
int64_t start_of(const GenerateOptions& options, int64_t row) {
  const auto& own = options.prefixes();
  return own.empty() ? options.bos_id() : own.at(static_cast<std::size_t>(row)).front();
}

// The columns that begin each target. As transformers, which puts the start token before those
// that are given unless any row begins with it.
std::vector<Tokens> columns_of(const GenerateInputs& inputs, const GenerateOptions& options) {
  const int64_t rows = inputs.src.size(0);
  if (options.prefixes().size() > 1 && static_cast<int64_t>(options.prefixes().size()) != rows)
    fail("decoder_start_token_id must be one token, or one for each of the {} rows. Got {}", rows,
         options.prefixes().size());
  std::vector<Tokens> columns;
  bool has_start = false;
  for (int64_t row = 0; row < rows; ++row) {
    columns.push_back(inputs.prefix.defined() ? row_of(inputs.prefix, row) : Tokens());
    has_start |= !columns.back().empty() && columns.back().front() == start_of(options, row);
  }
  if (!has_start)
    for (int64_t row = 0; row < rows; ++row)
      columns[row].insert(columns[row].begin(), start_of(options, row));
  return columns;
}

// The columns that count: transformers masks the padding of those that are given, but not a start
// token before it.
std::vector<Tokens> without_padding(const std::vector<Tokens>& columns,
                                    const GenerateInputs& inputs) {
  if (!inputs.prefix.defined()) return columns;
  const auto padding = padding_of(inputs.prefix_mask);
  std::vector<Tokens> kept = columns;
  for (std::size_t row = 0; row < kept.size(); ++row) {
    const auto given = kept[row].end() - inputs.prefix.size(1);
    kept[row].erase(given, given + padding[row]);
  }
  return kept;
}

// Of the columns that without_padding() leaves out, those that hold the start token: the target has
// begun there, so that models which number tokens by their ids count them, as transformers does.
std::vector<int64_t> hidden_columns(const GenerateInputs& inputs, const GenerateOptions& options) {
  if (!inputs.prefix.defined()) return {};
  std::vector<int64_t> hidden = padding_of(inputs.prefix_mask);
  for (std::size_t row = 0; row < hidden.size(); ++row) {
    const auto number = static_cast<int64_t>(row);
    const Tokens given = row_of(inputs.prefix, number);
    hidden[row] = std::count(given.begin(), given.begin() + hidden[row], start_of(options, number));
  }
  return hidden;
}

// The frozen model, or with --plain the modules.
struct GenerateModel {
  std::optional<FrozenTransformer> frozen;
  Transformer plain{nullptr};
  Settings config;

  const TransformerOptions& options() const { return frozen ? frozen->options() : plain->options; }
};

GenerateModel model_in(const GenerateArguments& arguments) {
  LoadReport report;
  const auto load = LoadOptions(arguments.load).report(&report);
  const auto noted = [&](GenerateModel model) {
    note_unexpected("generate", report);
    return model;
  };
  if (arguments.plain) {
    Seq2SeqWeights loaded = load_seq2seq_weights(arguments.folder, load);
    return noted({std::nullopt, std::move(loaded.model), std::move(loaded.config)});
  }
  FrozenSeq2Seq loaded = load_and_freeze_seq2seq(arguments.folder, arguments.freezing, load);
  return noted({std::move(loaded.model), Transformer(nullptr), std::move(loaded.config)});
}

// Calls `use` with the model and the mask of the source.
template <typename Use>
auto with_model(GenerateModel& model, const GenerateInputs& inputs, const Use& use) {
  const auto mask = AttentionMask::key_padding(inputs.src_mask.ne(0));
  return model.frozen ? use(*model.frozen, mask) : use(*model.plain.ptr(), mask);
}

std::size_t longest(const std::vector<Tokens>& rows) {
  std::size_t most = 0;
  for (const Tokens& row : rows) most = std::max(most, row.size());
  return most;
}

// (B * R, T, S): what the token in each column attends to in the source. Zeros for the columns that
// began the target, and after its end.
at::Tensor attention_of(const std::vector<const Hypothesis*>& rows,
                        const std::vector<std::size_t>& before, std::size_t length,
                        int64_t source_length) {
  const auto all = at::zeros(
      {static_cast<int64_t>(rows.size()), static_cast<int64_t>(length), source_length}, at::kFloat);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const at::Tensor& own = rows[row]->attention;
    all[static_cast<int64_t>(row)]
        .narrow(0, static_cast<int64_t>(before[row]), own.size(0))
        .copy_(own);
  }
  return all;
}

StateDict generated(const GenerateArguments& arguments, GenerateModel& model,
                    const GenerateInputs& inputs, const SettingOverrides& overrides) {
  const Settings settings = generation_settings(arguments.folder, model.config, overrides);
  GenerateOptions options = generate_options(settings, model.options().tgt_vocab());
  const auto columns = columns_of(inputs, options);
  options.hidden_columns(hidden_columns(inputs, options));
  options.prefixes(without_padding(columns, inputs));
  // transformers counts the columns of padding.
  const auto padding = static_cast<int64_t>(longest(columns) - longest(options.prefixes()));
  if (options.max_length()) options.max_length(*options.max_length() - padding);
  options.min_length(options.min_length() - padding);
  options.coverage_penalty(arguments.coverage_penalty).return_attention(arguments.attention);
  check_search(settings, options, inputs.src, model.options());
  if (arguments.seed) at::manual_seed(*arguments.seed);
  const auto found = with_model(model, inputs, [&](auto&& any, const AttentionMask& mask) {
    return generate(any, inputs.src, mask, options);
  });

  const bool beams = options.num_beams() > 1;
  const auto width = static_cast<std::size_t>(options.num_return_sequences());
  std::vector<Tokens> sequences;
  std::vector<float> scores;
  std::vector<const Hypothesis*> rows;
  std::vector<std::size_t> before;
  for (std::size_t row = 0; row < found.size(); ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      // A search may find fewer; transformers then returns beams that never lived.
      const Hypothesis& one = found[row][std::min(i, found[row].size() - 1)];
      rows.push_back(&one);
      before.push_back(columns[row].size());
      sequences.push_back(columns[row]);
      sequences.back().insert(sequences.back().end(), one.tokens.begin(), one.tokens.end());
      scores.push_back(i < found[row].size() ? static_cast<float>(one.score) : -1e9F);
    }
  }
  const int64_t fill = fill_token(settings, beams);
  const std::size_t length = longest(sequences);
  Tokens flat;
  for (Tokens& sequence : sequences) {
    sequence.resize(length, fill);
    flat.insert(flat.end(), sequence.begin(), sequence.end());
  }
  StateDict result;
  result.insert("sequences",
                at::tensor(flat, at::kLong)
                    .view({static_cast<int64_t>(sequences.size()), static_cast<int64_t>(length)}));
  if (beams) result.insert("sequences_scores", at::tensor(scores, at::kFloat));
  if (arguments.attention)
    result.insert("attention", attention_of(rows, before, length, inputs.src.size(1)));
  return result;
}

// Teacher-forced: position t has the logits of the token after it.
StateDict forced_logits(const GenerateArguments& arguments, GenerateModel& model,
                        const GenerateInputs& inputs) {
  if (!inputs.prefix.defined()) fail("--logits needs `decoder_input_ids` in {}", arguments.input);
  auto mask = AttentionMask::causal();
  if (!inputs.prefix_mask.all().item<bool>())
    mask = mask & AttentionMask::key_padding(inputs.prefix_mask.ne(0));
  StateDict result;
  result.insert("logits", with_model(model, inputs, [&](auto&& any, const AttentionMask& of_src) {
                  const auto memory = any.encode(inputs.src, of_src);
                  return any.decode(inputs.prefix, memory, mask, of_src).contiguous();
                }));
  return result;
}

void generate_tensors(const GenerateArguments& arguments) {
  const SettingOverrides overrides = overrides_in(arguments.settings);
  check_output(arguments.output, {arguments.folder, arguments.input});
  const at::NoGradGuard no_grad;
  const GenerateInputs inputs = inputs_in(read_tensors(arguments.input, {}), arguments.input);
  GenerateModel model = model_in(arguments);
  const auto& sizes = model.options();
  check_ids(inputs.src, "input_ids", sizes.src_vocab(), sizes.most_tokens());
  if (inputs.prefix.defined())
    check_ids(inputs.prefix, "decoder_input_ids", sizes.tgt_vocab(), sizes.most_tokens());
  const StateDict result = arguments.logits ? forced_logits(arguments, model, inputs)
                                            : generated(arguments, model, inputs, overrides);
  save_tensors(arguments.output, result);
  print("{}: {}\n", arguments.output, described(result));
}

void add_generate(CLI::App& app) {
  auto arguments = std::make_shared<GenerateArguments>();
  auto* sub = app.add_subcommand(
      "generate", "Generate targets with an encoder-decoder of Hugging Face's transformers.");
  sub->add_option(
         "MODEL_DIR", arguments->folder,
         "folder with config.json and the weights, as save_pretrained() writes it, or what "
         "posenc freeze wrote of it")
      ->required()
      ->check(input_path());
  sub->add_option("--in", arguments->input,
                  "safetensors with `input_ids` (B, S), and optionally `attention_mask`, nonzero "
                  "for tokens, `decoder_input_ids` (B, P), which begin the targets, and "
                  "`decoder_attention_mask`, all int64")
      ->required()
      ->check(input_path());
  sub->add_option("--out", arguments->output,
                  "safetensors for `sequences` (B * R, T) and, of a beam search, "
                  "`sequences_scores` (B * R); torch.save's format for .pt and .pth")
      ->required()
      ->check(output_path());
  auto* set = sub->add_option("--set", arguments->settings,
                              "a setting of transformers' generate(), with a value in JSON, which "
                              "replaces the folder's; null removes it; repeatable");
  set->check(assignment())->allow_extra_args(false);
  auto* plain = sub->add_flag("--plain", arguments->plain, "use the modules, not the frozen model");
  add_threads(*sub);
  for (auto* option : add_freezing(*sub, arguments->freezing)) option->excludes(plain);
  add_allow_unexpected(*sub, arguments->load);
  auto* attention = sub->add_flag(
      "--attention", arguments->attention,
      "also write `attention` (B * R, T, S): the weights of the last layer's attention to the "
      "source for each token, averaged over the heads");
  auto* coverage =
      sub->add_option("--coverage-penalty", arguments->coverage_penalty,
                      "GNMT's penalty of source tokens that are attended to by few of the target's")
          ->check(real(0.0));
  auto* seed = sub->add_option("--seed", arguments->seed,
                               "of the samples of do_sample, which then are the same each time")
                   ->check(integer(0));
  sub->add_flag("--logits", arguments->logits,
                "write only `logits` (B, P, V) of `decoder_input_ids`, each after those before it")
      ->excludes(set)
      ->excludes(attention)
      ->excludes(coverage)
      ->excludes(seed);
  sub->footer(
      "Example:\n  posenc generate models/opus-mt-en-de --in ids.safetensors --out "
      "found.safetensors --set num_beams=4 --set max_new_tokens=40");
  sub->callback([arguments] { generate_tensors(*arguments); });
}

const Command kGenerate{12, add_generate};

}  // namespace
}  // namespace posenc::cli
