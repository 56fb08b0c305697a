// posenc-budget: one command: the tensors that come in, the runs of tokens, those that go out
// posenc encode: runs the encoder in a folder, with safetensors as input and output.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cli/classify_lines.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/prompt_options.h"
#include "cli/usage.h"
#include "cli/weights.h"
#include "models/config/settings.h"
#include "models/encoder/parts.h"
#include "models/heads/rows.h"
#include "posenc/models/classifier.h"
#include "posenc/models/encoder.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/frozen_file.h"
#include "posenc/models/inspect_folder.h"
#include "posenc/weights/save.h"

namespace posenc::cli {
namespace {

struct EncodeArguments {
  std::string folder, input, output;
  bool head = false;
  EncodeTextOptions text;
};

constexpr const char* kOptionalInputs[] = {"attention_mask", "position_ids", "token_type_ids",
                                           "task_type_ids", "bbox"};

EncoderInputs optional_inputs(const StateDict& given) {
  const auto tensor = [&](const char* name) {
    return given.contains(name) ? given[name] : at::Tensor();
  };
  return EncoderInputs()
      .attention_mask(tensor("attention_mask"))
      .token_type_ids(tensor("token_type_ids"))
      .position_ids(tensor("position_ids"))
      .task_type_ids(tensor("task_type_ids"))
      .bbox(tensor("bbox"));
}

// What encoders of each kind take.
struct Input {
  const char *name, *of, *what;
};
constexpr Input kIds = {"input_ids", "token ids", "the ids of tokens (B, L)"};
constexpr Input kPixels = {"pixel_values", "images", "float32 images (B, C, H, W)"};
constexpr Input kFeatures = {"inputs_embeds", "features", "float32 features (B, L, D)"};

// The ids, the pixels or the features.
at::Tensor encoder_input(const StateDict& given, const EncoderOptions& options,
                         const std::string& path) {
  const Input expected = options.embeddings() ? kIds : options.patches() ? kPixels : kFeatures;
  std::vector<std::string> known = {kIds.name, kPixels.name, kFeatures.name};
  known.insert(known.end(), std::begin(kOptionalInputs), std::end(kOptionalInputs));
  refuse_unknown(given, path, "an encoder", known);
  for (const Input& other : {kIds, kPixels, kFeatures}) {
    if (given.contains(other.name) && std::string_view(other.name) != expected.name)
      fail("{}: an encoder of {} takes no `{}`, but `{}`", path, expected.of, other.name,
           expected.name);
  }
  if (!given.contains(expected.name)) {
    fail("{} must have a tensor `{}`, {}; it contains {}", path, expected.name, expected.what,
         described(given));
  }
  return given[expected.name];
}

// The result of a model, encoder or classifier, for the tensors of a file.
template <typename Model>
auto forward(const Model& model, const EncoderOptions& options, const StateDict& given,
             const std::string& path) {
  const at::Tensor input = encoder_input(given, options, path);
  EncoderInputs inputs = optional_inputs(given);
  const bool has_features = !options.embeddings() && !options.patches();
  if (!has_features) return model.forward(input, inputs);
  return model.forward({}, inputs.inputs_embeds(input));
}

// The first column of each row's tokens, and the one after their last; nothing unless each row has
// tokens without padding between them.
struct TokenRuns {
  std::vector<int64_t> begin, end;

  static std::optional<TokenRuns> of(const at::Tensor& given) {
    const at::Tensor mask = given.ne(0).contiguous();
    TokenRuns runs;
    for (int64_t row = 0; row < mask.size(0); ++row) {
      const auto* const first = mask.const_data_ptr<bool>() + row * mask.size(1);
      const auto* const last = first + mask.size(1);
      const auto* const begin = std::find(first, last, true);
      const auto* const end = std::find(begin, last, false);
      if (begin == end || std::find(end, last, true) != last) return std::nullopt;
      runs.begin.push_back(begin - first);
      runs.end.push_back(end - first);
    }
    return runs;
  }
};

// The result of a causal model for each row as it is alone: a position is the number of the tokens
// before it. Rows of padding are zeros.
EncoderOutput forward_runs(const FrozenEncoder& model, const at::Tensor& ids,
                           const TokenRuns& runs) {
  const std::vector<RotaryOptions> rotaries = rotaries_by_length(model.options());
  std::map<int64_t, std::vector<int64_t>> groups;  // rows, by the frequencies that they share
  for (int64_t row = 0; row < ids.size(0); ++row)
    groups[frequency_group(rotaries, runs.end[row] - runs.begin[row])].push_back(row);
  EncoderOutput out;
  for (const auto& [group, rows] : groups) {
    const auto count = static_cast<int64_t>(rows.size());
    const at::Tensor own = at::zeros({count, ids.size(1)}, ids.options());
    const at::Tensor mask = at::zeros_like(own);
    const auto run = [&](int64_t i) { return runs.end[rows[i]] - runs.begin[rows[i]]; };
    int64_t longest = 0;
    for (int64_t i = 0; i < count; ++i) {
      longest = std::max(longest, run(i));
      own[i].narrow(0, 0, run(i)).copy_(ids[rows[i]].narrow(0, runs.begin[rows[i]], run(i)));
      mask[i].narrow(0, 0, run(i)).fill_(1);
    }
    const EncoderOutput found = model.forward(
        own.narrow(1, 0, longest), EncoderInputs().attention_mask(mask.narrow(1, 0, longest)));
    const auto spread = [&](at::Tensor& all, const at::Tensor& of) {
      if (!all.defined()) all = at::zeros({ids.size(0), ids.size(1), of.size(2)}, of.options());
      for (int64_t i = 0; i < count; ++i)
        all[rows[i]].narrow(0, runs.begin[rows[i]], run(i)).copy_(of[i].narrow(0, 0, run(i)));
    };
    spread(out.embeddings, found.embeddings);
    spread(out.last_hidden_state, found.last_hidden_state);
  }
  return out;
}

// The result of an encoder for the tensors of a file; `is_decoder`: of a language model's layers.
EncoderOutput forward(const FrozenEncoder& model, const StateDict& given, const std::string& path,
                      bool is_decoder) {
  const at::Tensor input = encoder_input(given, model.options(), path);
  const bool is_masked_text = is_decoder && model.options().causal() &&
                              given.contains("attention_mask") && given.contains(kIds.name) &&
                              !given.contains("position_ids");
  if (is_masked_text && given["attention_mask"].sizes() == input.sizes())
    if (const auto runs = TokenRuns::of(given["attention_mask"]))
      return forward_runs(model, input, *runs);
  return forward(model, model.options(), given, path);
}

std::vector<std::string> shown_all(std::vector<std::string> texts) {
  for (auto& text : texts) text = shown(text);
  return texts;
}

// The vector that a sentence-transformers model is for is not among the results.
void note_stages(const std::string& folder, const std::string& base) {
  const std::vector<std::string> stages = inspect_folder(folder, base).sentence_stages;
  if (stages.empty()) return;
  print_error(
      "posenc encode: {} is a sentence-transformers model. Its sentence vectors are made from "
      "last_hidden_state by {}, which posenc encode does not compute; `pooled` is not written\n",
      folder, listed(shown_all(stages)));
}

StateDict outputs(const EncoderOutput& out) {
  StateDict result;
  result.insert("embeddings", out.embeddings.contiguous());
  result.insert("last_hidden_state", out.last_hidden_state.contiguous());
  return result;
}

StateDict encoded(const EncodeArguments& arguments, const StateDict& given) {
  LoadReport report;
  const auto load = LoadOptions(arguments.text.load).report(&report);
  const FrozenEncoder model =
      load_and_freeze_encoder(arguments.folder, arguments.text.freezing, load);
  note_unexpected("encode", report);
  const bool is_decoder = inspect_folder(arguments.folder, arguments.text.load.base()).is_decoder;
  const EncoderOutput out = forward(model, given, arguments.input, is_decoder);
  StateDict result = outputs(out);
  if (out.pooled.defined()) result.insert("pooled", out.pooled.contiguous());
  note_stages(arguments.folder, arguments.text.load.base());
  return result;
}

// DPR's reader has a second head, which tells of each passage whether the answer is in it.
bool is_reader(const EncodeArguments& arguments) {
  const std::string file = (std::filesystem::path(arguments.folder) / "config.json").string();
  if (!std::filesystem::exists(file) || is_frozen_folder(arguments.folder)) return false;
  const Settings config("posenc encode", file);
  return config.value("architectures") == nlohmann::json::array({"DPRReader"});
}
at::Tensor relevance(const EncodeArguments& arguments, const EncoderOutput& out) {
  EncoderHead head = load_head(arguments.folder, head::Kind::Sequence, arguments.text.load);
  return head->logits(out.pooled).squeeze(1);
}

StateDict encoded_with_head(const EncodeArguments& arguments, const StateDict& given) {
  LoadReport report;
  const auto load = LoadOptions(arguments.text.load).report(&report);
  const FrozenClassifier model =
      load_and_freeze_classifier(arguments.folder, arguments.text.freezing, load);
  note_unexpected("encode", report);
  const ClassifierOutput out = forward(model, model.options().encoder(), given, arguments.input);
  StateDict result = outputs(out.encoder);
  result.insert("logits", out.logits.contiguous());
  if (is_reader(arguments))
    result.insert("relevance_logits", relevance(arguments, out.encoder).contiguous());
  return result;
}

void encode(const EncodeArguments& arguments) {
  check_output(arguments.output, {arguments.folder, arguments.input});
  const at::NoGradGuard no_grad;
  const StateDict given = read_tensors(arguments.input, {});
  const StateDict result =
      arguments.head ? encoded_with_head(arguments, given) : encoded(arguments, given);
  save_tensors(arguments.output, result);
  print("{}: {}\n", arguments.output, described(result));
}

constexpr int64_t kMostTextsAtATime = 1 << 20;

// The options of --text.
void add_text_options(CLI::App& sub, EncodeTextOptions& options, CLI::Option* text) {
  add_task(sub, options.task)->needs(text);
  for (auto* option : add_prompt_options(sub, options.prompt, "each line")) option->needs(text);
  sub.add_flag("--normalize", options.normalize, "divide each vector by its length")->needs(text);
  sub.add_option("--truncate-dim", options.truncate_dim, "keep this many entries of each vector")
      ->needs(text)
      ->check(integer(1, kMostChannels));
  sub.add_flag("--sparse", options.sparse,
               "read a ...ForMaskedLM as a SparseEncoder does, or take BGE-M3's weights of tokens")
      ->needs(text);
  sub.add_option("--max-active-dims", options.max_active_dims,
                 "of a sparse vector keep this many entries, those of the largest absolute values")
      ->needs(text)
      ->check(integer(1, kMostChannels));
  auto* decode = sub.add_flag("--decode", options.decode,
                              "print the tokens of sparse vectors, by descending weight: a line "
                              "{\"tokens\": [[token, weight], ...]} of each");
  decode->needs(text);
  sub.add_option("--top", options.top, "with --decode: print this many tokens")
      ->needs(decode)
      ->check(integer(1, kMostChannels));
  sub.add_flag("--per-token", options.per_token,
               "vectors of tokens, by the head colbert_linear.pt of a dense model: bge-m3")
      ->needs(text);
  sub.add_option("--pool-factor", options.pool_factor,
                 "of a model of vectors of tokens: pool those of each document to about one in so "
                 "many")
      ->needs(text)
      ->check(real(1.0));
  sub.add_option("--batch", options.batch, "number of texts that are encoded at a time")
      ->needs(text)
      ->check(integer(1, kMostTextsAtATime));
  for (auto* option : add_precision_options(sub, options.precision)) option->needs(text);
}

void add_encode(CLI::App& app) {
  auto arguments = std::make_shared<EncodeArguments>();
  auto* sub = app.add_subcommand(
      "encode",
      "Run an encoder of Hugging Face's transformers: BERT, RoBERTa, ALBERT, ModernBERT, ViT, ..., "
      "or a model of sentence-transformers on lines of text.");
  sub->add_option(
         "MODEL_DIR", arguments->folder,
         "folder with config.json and the weights, as save_pretrained() writes it, a model "
         "of sentence-transformers, or what posenc freeze wrote of either")
      ->required()
      ->check(input_path());
  auto* in = sub->add_option(
      "--in", arguments->input,
      "safetensors with `input_ids` (B, L) and optionally `attention_mask`, nonzero for tokens, "
      "`token_type_ids`, `position_ids`, `task_type_ids` and, for LayoutLM, `bbox` (B, L, 4); or "
      "`pixel_values` (B, C, H, W); or for wav2vec2-conformer `inputs_embeds` (B, L, D), the "
      "features after their projection");
  in->check(input_path());
  auto* text = sub->add_option("--text", arguments->text.file,
                               "text file in UTF-8, a text a line; -: standard input");
  text->check(input_path())->excludes(in);
  auto* out = sub->add_option(
      "--out", arguments->output,
      "safetensors for `embeddings`, the input of the first layer, "
      "`last_hidden_state`, whose rows of masked tokens are zero, and `pooled`, if the "
      "model has a pooler and is not one of sentence-transformers; with --text for "
      "`embeddings` (N, D), the vectors of the lines, or of a SparseEncoder "
      "`crow_indices` (N + 1), `col_indices`, `values` and `size`, which is N, V; "
      "torch.save's format for .pt and .pth");
  out->check(output_path());
  sub->add_flag(
         "--head", arguments->head,
         "also `logits` of the model's head: labels of sequences or images (B, labels) or "
         "tokens (B, L, labels), answers to questions (B, L, 2: start, end), words for masks "
         "(B, L, V), or a score of each choice (B, 1), where the rows are the choices of a "
         "question; of a DPRReader besides `relevance_logits` (B), whether a passage has the "
         "answer")
      ->excludes(text);
  add_threads(*sub);
  add_freezing(*sub, arguments->text.freezing);
  add_allow_unexpected(*sub, arguments->text.load);
  add_adapters(*sub, arguments->text.load);
  add_text_options(*sub, arguments->text, text);
  sub->footer("Models:\n" + listed(encoder_model_types()) +
              "\nExample:\n  posenc encode models/bert-base-uncased --in ids.safetensors --out "
              "vectors.safetensors\n  posenc encode models/all-MiniLM-L6-v2 --text lines.txt --out "
              "vectors.safetensors");
  sub->callback([arguments, in, text, out] {
    if (in->count() == 0 && text->count() == 0) fail_usage("--in or --text is required");
    if (arguments->text.decode && out->count() > 0) fail_usage("--decode excludes --out");
    if (!arguments->text.decode && out->count() == 0) fail_usage("--out is required");
    if (text->count() == 0) return encode(*arguments);
    arguments->text.folder = arguments->folder;
    arguments->text.output = arguments->output;
    read_ranges(arguments->text.precision);
    encode_text_lines(arguments->text);
  });
}

const Command kEncode{7, add_encode};

}  // namespace
}  // namespace posenc::cli
