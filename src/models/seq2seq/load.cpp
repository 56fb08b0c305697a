#include "models/seq2seq/load.h"

#include <torch/nn/init.h>

#include "models/config/model_folder.h"
#include "models/lora/adapted_folder.h"
#include "models/lora/adapted_source.h"
#include "models/types/leftovers.h"
#include "models/types/model_class.h"
#include "models/types/model_types.h"
#include "posenc/core/skip_init.h"
#include "weights/load/key_map.h"
#include "weights/load/load_plan.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

constexpr const char* kCaller = "load_seq2seq";  // in messages

constexpr const char* kSeq2SeqLogitsBias = "final_layer.bias";

void check_seq2seq_layers(const char* caller, const std::string& folder,
                          const Seq2SeqFamily& family, const TransformerOptions& options,
                          const io::TensorSource& source) {
  const std::tuple<const char*, std::string, int64_t> stacks[] = {
      {"encoder", family.encoder_layers, options.num_encoder_layers()},
      {"decoder", family.decoder_layers, options.num_decoder_layers()}};
  for (const auto& [stack, pattern, layers] : stacks) {
    const std::string number = std::to_string(layers - 1);
    const std::string last = io::fill_pattern(pattern, {number});
    TORCH_CHECK_VALUE(has_tensors_of(source, last), "[", caller, "] ", folder,
                      ": the layers of the ", stack,
                      " in config.json must be at most those of the weights, which lack ", last,
                      family.in_layer, ". Got ", layers);
  }
}

Transformer empty_seq2seq(const TransformerOptions& options) {
  const SkipInit skip;
  Transformer model(options);
  if (options.output_bias()) torch::nn::init::zeros_(model->final_layer->bias);  // optional
  return model;
}

}  // namespace

KeyMap selection_of(const std::string& prefix) {
  return prefix.empty() ? KeyMap() : KeyMap{{prefix + "*", "*"}, {"*", ""}};
}

const hf::ModelType& seq2seq_type(const Settings& config) {
  const std::string type = config.text("model_type", "");
  const hf::ModelType* const model = hf::find_model_type(type);
  if (model != nullptr && model->seq2seq != nullptr) return *model;
  TORCH_CHECK_VALUE(!hf::is_decoder_alone(type), config.where(),
                    "model_type must be that of an encoder-decoder. Got ", type,
                    ", a decoder alone");
  TORCH_CHECK_VALUE(model == nullptr || *model->lacks == '\0', config.where(), "model_type ", type,
                    " is not supported: it needs ", model == nullptr ? "" : model->lacks);
  std::vector<std::string> known;
  for (const hf::ModelType& row : hf::model_types())
    if (row.seq2seq != nullptr) known.emplace_back(row.type);
  hf::refuse_model_type(config.where(), "model_type must be that of an encoder-decoder", type,
                        known);
}

// The settings as the class has them. Of two names of one setting, transformers takes the one that
// it reads later. T5's decoder has by default as many layers as the encoder by the earlier name,
// which may be the class's default.
Settings seq2seq_settings(const Settings& config, const std::string& type) {
  const hf::ConfigClass& known = hf::ConfigClass::of(type);
  nlohmann::json settings = config.object();
  config.refuse_nulls(known);
  for (const auto& alias : known.aliases()) {
    const std::string early(alias.name_is_field ? alias.name : alias.own);
    const std::string late(alias.name_is_field ? alias.own : alias.name);
    const auto found = settings.find(late);
    if (found == settings.end() || found->is_null()) continue;
    if (early == "num_layers" && settings.value("num_decoder_layers", nlohmann::json()).is_null())
      settings["num_decoder_layers"] = settings.value(early, known.default_of(early));
    settings.erase(early);
  }
  const Settings own = config.with(std::move(settings)).of(type);
  if (!own.flag("is_encoder_decoder")) own.refuse("is_encoder_decoder", "must be true");
  return own;
}

// Null stands for the class's default too, since batches of sources need padding.
int64_t seq2seq_pad(const Settings& config, const std::string& type,
                    const TransformerOptions& options) {
  const bool reads_tokens = !options.src_features();
  const int64_t vocab = reads_tokens ? options.src_vocab() : options.tgt_vocab();
  if (const auto pad = config.token_if("pad_token_id", vocab)) return *pad;
  if (!reads_tokens) return -1;
  const int64_t default_value = config.default_of("pad_token_id");
  if (default_value >= vocab) {
    config.refuse("pad_token_id", "must be a token in [0, " + std::to_string(vocab) +
                                      "), which the default of " + type + ", " +
                                      std::to_string(default_value) + ", is not");
  }
  return default_value;
}

std::vector<AbsentBias> absent_biases(const Seq2SeqFamily& family,
                                      const TransformerOptions& options) {
  std::vector<AbsentBias> absent;
  if (!options.bias() || options.key_bias()) return absent;
  const LoadOptions names = LoadOptions().key_map(family.keys(options));
  const auto add = [&](const char* stack, int64_t layers, const char* attention) {
    for (int64_t i = 0; i < layers; ++i) {
      const auto parts =
          io::names_in_file(c10::str(stack, ".layers.", i, ".", attention, ".in_proj_bias"), names);
      absent.push_back({parts.at(1), options.d_model()});  // of queries, keys and values
    }
  };
  add("encoder", options.num_encoder_layers(), "self_attn");
  add("decoder", options.num_decoder_layers(), "self_attn");
  add("decoder", options.num_decoder_layers(), "multihead_attn");
  return absent;
}

KeyMap seq2seq_later_layers(const Seq2SeqFamily& family, const TransformerOptions& options,
                            const io::TensorSource& source) {
  KeyMap map;
  drop_later_layers(map, source, "", family.encoder_layers, {options.num_encoder_layers()});
  drop_later_layers(map, source, "", family.decoder_layers, {options.num_decoder_layers()});
  return map;
}

LoadOptions seq2seq_load_options(const Seq2SeqFamily& family, const TransformerOptions& options,
                                 const Vocabulary& source) {
  KeyMap map = seq2seq_later_layers(family, options, source);
  for (auto& rule : source.keys()) map.push_back(std::move(rule));
  for (auto& rule : family.keys(options)) map.push_back(std::move(rule));
  return LoadOptions().cast(true).allow_unexpected(true).key_map(std::move(map));
}

std::unique_ptr<io::LoadPlan> seq2seq_plan(const char* caller, const std::string& folder,
                                           const Settings& config,
                                           const Seq2SeqStructure& structure,
                                           const TransformerOptions& options,
                                           const Vocabulary& source, const LoadOptions& load) {
  const auto make = [&](const Settings* changed) {
    if (changed == nullptr) return Transformer(options).ptr();
    return Transformer(structure.family->options(*changed, structure).tie(options.tie())).ptr();
  };
  io::FormatNames names;  // transformers computes the first three and uses zeros for the last
  names.is_new = true;
  names.optional = {"src_embedding.position_encoding.pe", "tgt_embedding.position_encoding.pe",
                    "src_features.position_encoding.pe", kSeq2SeqLogitsBias};
  auto plan = plan_of({caller, folder, &config, make}, source, load, names);
  // Positions that count tokens have no limit.
  if (options.position_ids() != embeddings::PositionIds::Arange) return plan;
  for (const TableReport& table : plan->report().tables) {
    TORCH_CHECK_VALUE(
        table.rows == table.file_rows, "[", caller, "] ", folder, ": ", structure.family->positions,
        " in config.json must fit the weights: ", io::names_in_file(table.name, load).front(),
        " must have ", table.rows, " rows. Got ", table.file_rows);
  }
  return plan;
}

PlannedTransformer planned_transformer(const char* caller, const std::string& folder,
                                       const std::string& path, const Settings& config,
                                       const Seq2SeqStructure& structure,
                                       TransformerOptions options, const VocabularyNames& names,
                                       const io::TensorSource& renamed) {
  check_seq2seq_layers(caller, folder, *structure.family, options, renamed);
  const ZeroBiases whole(renamed, absent_biases(*structure.family, options));
  const Vocabulary source(whole, names);
  options.tie(source.tying());
  const LoadOptions names_in = seq2seq_load_options(*structure.family, options, source);
  auto plan = seq2seq_plan(caller, folder, config, structure, options, source, names_in);
  Transformer model = empty_seq2seq(options);
  plan->apply_to(*model);
  // -inf in final_logits_bias means "never".
  check_finite(
      caller, *model, path,
      [&](const std::string& name) { return io::names_in_file(name, names_in).front(); },
      [](const std::string& name) { return name == kSeq2SeqLogitsBias; });
  model->eval();
  return {std::move(model), std::move(plan)};
}

Seq2SeqWeights load_seq2seq_weights(const std::string& given, const LoadOptions& options_given) {
  check_folder_options(kCaller, options_given);
  check_is_folder(kCaller, given);
  const AdaptedFolder place = adapted_folder(kCaller, given, options_given);
  const std::string& folder = place.folder;
  const LoadOptions& load = place.options;
  const auto config =
      io::in_context(kCaller, folder, [&] { return model_config(kCaller, folder); });
  const hf::ModelType& type = seq2seq_type(config);
  const Seq2SeqStructure& structure = *type.seq2seq;
  const Seq2SeqFamily& family = *structure.family;
  const Settings own = seq2seq_settings(config, type.type);
  TransformerOptions options = family.options(own, structure);
  const std::string path = weights_in(kCaller, folder);
  auto adapters = lora::load_all(kCaller, load.adapters());
  return io::in_context(kCaller, path, [&] {
    const io::FileSource file(path);
    const io::RenamedSource selected(file, "", selection_of(load.prefix()));
    const io::RenamedSource mapped(selected, "", load.key_map());
    const io::RenamedSource by_class(mapped, "", family.renames(structure));
    const lora::AdaptedSource adapted(
        mapped, std::move(adapters),
        {type.type, {family.prefix}, {}, seq2seq_later_layers(family, options, by_class)});
    const io::RenamedSource renamed(adapted, "", family.renames(structure));
    const VocabularyNames names = family.vocabulary(own, structure);
    const LoadOptions without_prefix = LoadOptions(load).prefix("");
    Leftovers leftovers(renamed, without_prefix, {type.type});
    leftovers.add_unused_patterns(mapped);
    for (const std::string& name : {names.shared, names.encoder, names.decoder, names.head})
      if (!name.empty()) leftovers.add_read(name);
    const int64_t pad = seq2seq_pad(own, type.type, options);
    PlannedTransformer loaded =
        planned_transformer(kCaller, folder, path, own, structure, options, names, renamed);
    leftovers.add_model(*loaded.plan, family.prefix, "");
    adapted.check_targets(leftovers.read());
    leftovers.finish();
    return Seq2SeqWeights{std::move(loaded.model), pad, type.type, config};
  });
}

}  // namespace posenc
