// save_pretrained() of an encoder-decoder.

#include <ATen/ops/equal.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <utility>

#include "models/save/input_files.h"
#include "models/save/packed.h"
#include "models/save/same.h"
#include "models/save/saved_seq2seq.h"
#include "models/save/saved_settings.h"
#include "models/save/target.h"
#include "models/save/tensors.h"
#include "models/save/write_folder.h"
#include "models/seq2seq/load.h"
#include "models/types/model_class.h"
#include "posenc/models/save_pretrained.h"
#include "weights/load/key_map.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

using nlohmann::json;

constexpr const char* kSaveSeq2Seq = "save_pretrained";

// A model whose config.json has been completed.
struct SavedSeq2Seq {
  const hf::ModelType& type;
  json object;
  Settings settings;           // in it
  TransformerOptions options;  // as the configuration has them
  VocabularyNames names;
  bool has_other_pad = false;  // than the configuration that the model came from
};

void check_seq2seq_options(const Seq2SeqModel& model, const SavePretrainedOptions& options) {
  TORCH_CHECK_VALUE(!model.model.is_empty(),
                    "[save_pretrained] the model must not be an empty holder");
  const auto check = [](const char* name, bool is_unset) {
    TORCH_CHECK_VALUE(is_unset, "[save_pretrained] SavePretrainedOptions::", name,
                      " must not be set for an encoder-decoder, which is a whole model");
  };
  check("head", options.head().is_empty());
  check("rest_of", options.rest_of().empty());
  check("allow_missing", !options.allow_missing());
}

// The config.json that the model came with, and the settings of the caller over it.
Settings given_settings(const Seq2SeqModel& model, const SavePretrainedOptions& options) {
  json config = {{"model_type", model.model_type}};
  if (!model.origin.config.empty()) {
    config = Settings::parse(kSaveSeq2Seq, "the configuration of the model", model.origin.config)
                 .object();
  }
  if (!options.config().empty()) {
    config.update(
        Settings::parse(kSaveSeq2Seq, "SavePretrainedOptions::config", options.config()).object());
  }
  return Settings::of_object(kSaveSeq2Seq, std::move(config));
}

// Of a source of sound there may be none.
json pad_of(const Seq2SeqModel& model) { return model.pad < 0 ? json() : json(model.pad); }

// The ids that transformers takes from a config.json in training, which the options of a model that
// was made by hand do not have.
void set_ids(json& object, const GenerateOptions& generation) {
  object["decoder_start_token_id"] = generation.bos_id();
  if (!generation.eos_ids().empty()) object["eos_token_id"] = generation.eos_ids().front();
}

SavedSeq2Seq completed(const Seq2SeqModel& model, const SavePretrainedOptions& options) {
  const Settings given = given_settings(model, options);
  const hf::ModelType& type = seq2seq_type(given);
  const Seq2SeqStructure& structure = *type.seq2seq;
  const Seq2SeqFamily& family = *structure.family;
  const Settings before = seq2seq_settings(given, type.type);
  TransformerOptions expected = model.model->options;
  expected.num_encoder_layers(static_cast<int64_t>(model.model->encoder->layers->size()))
      .num_decoder_layers(static_cast<int64_t>(model.model->decoder->layers->size()));
  json object = before.object();
  const json settings = family.settings(expected, before, structure);
  for (const auto& [name, value] : settings.items()) set_setting(object, before, name, value);
  const bool is_new = model.origin.config.empty();
  if (is_new) set_ids(object, model.generation);
  const bool has_other_pad = is_new || seq2seq_pad(before, type.type, expected) != model.pad;
  if (has_other_pad) object["pad_token_id"] = pad_of(model);
  set_defaults(object, before.with(object).of(type.type), type.type);
  set_dtype(object);
  std::string name(hf::model_class_of(type.type));
  name.resize(name.size() - std::string("Model").size());
  object["architectures"] = {options.architecture().empty() ? name + structure.class_ending
                                                            : options.architecture()};
  // As it is read: an id is unsigned then.
  const Settings saved =
      seq2seq_settings(Settings::of_object(kSaveSeq2Seq, json::parse(object.dump())), type.type);
  TransformerOptions read = family.options(saved, structure);
  check_same(read, expected, saved);
  return {type,
          std::move(object),
          saved,
          read.tie(expected.tie()),
          family.vocabulary(saved, structure),
          has_other_pad};
}

// A matrix of the vocabulary, and which of them it is.
struct VocabularyMatrix {
  std::string name;
  at::Tensor weight;
  int matrix;
};

// The matrices of the vocabulary: the one that stands for those that are tied to it, and others.
void add_vocabulary(StateDict& tensors, const TransformerImpl& model,
                    const VocabularyNames& names) {
  const Tying tie = model.options.tie();
  const int decoder = tie == Tying::EncoderDecoder || tie == Tying::ThreeWay ? 0 : 1;
  const int head = tie == Tying::DecoderOutput || tie == Tying::ThreeWay ? decoder : 2;
  const VocabularyMatrix all[] = {
      {names.encoder,
       model.src_embedding ? model.src_embedding->token_embedding->weight : at::Tensor(), 0},
      {names.decoder, model.tgt_embedding->token_embedding->weight, decoder},
      {names.head, model.final_layer->effective_weight(), head}};
  const auto add = [&](const std::string& name, const VocabularyMatrix& one) {
    tensors.insert(name, one.weight.detach().to(at::kFloat));
  };
  int standing = -1;  // the matrix that is there under another name
  if (!names.shared.empty()) {
    const VocabularyMatrix& one = all[tie == Tying::DecoderOutput ? 1 : 0];
    add(names.shared, one);
    if (names.are_tied) standing = one.matrix;
  } else if (names.are_tied && !names.order.empty()) {
    add(names.decoder, all[1]);
    standing = decoder;
  }
  for (const VocabularyMatrix& one : all) {
    if (one.name.empty()) continue;
    const bool may_be_absent =
        std::find(names.order.begin(), names.order.end(), one.name) != names.order.end();
    // One of the same values is tied to it when it is loaded.
    const bool is_standing =
        one.matrix == standing || (standing >= 0 && at::equal(one.weight, all[standing].weight));
    const bool is_there = tensors.contains(one.name) || (is_standing && may_be_absent);
    if (!is_there) add(one.name, one);
  }
}

// Whether a table of positions is that which the class computes by itself.
bool is_computed(const PositionalEncodingImpl& positions) {
  const ComputedTable table = positions.computed_tables().front();
  return at::equal(table.compute(), positions.pe.cpu());
}

// The tables of positions that are no parameters, where the class has them among its weights. Those
// of a class that has not are saved if they came from a file that had others.
void add_positions(StateDict& tensors, const TransformerImpl& model,
                   const Seq2SeqStructure& structure) {
  if (const AudioEmbeddings& features = model.src_features) {
    const LoadOptions names = LoadOptions().key_map(structure.family->keys(model.options));
    tensors.insert(io::names_in_file("src_features.position_encoding.pe", names).front(),
                   features.ptr()->position_encoding->pe.detach().to(at::kFloat));
  }
  if (structure.sinusoid == nullptr || (structure.counts_tokens && !structure.saves_positions))
    return;
  const TransformerOptions& options = model.options;
  const int64_t rows =
      options.max_len() + (structure.counts_tokens ? *options.padding_idx() + 1 : 0);
  for (const auto& [stack, embedding] :
       {std::pair{"encoder", model.src_embedding}, {"decoder", model.tgt_embedding}}) {
    const PositionalEncodingImpl& positions = *embedding->position_encoding;
    if (!structure.saves_positions && is_computed(positions)) continue;
    tensors.insert(std::string("model.") + stack + ".embed_positions.weight",
                   positions.pe.detach().slice(1, 0, rows).to(at::kFloat));
  }
}

}  // namespace

StateDict seq2seq_tensors(const TransformerImpl& model, const hf::ModelType& type,
                          const TransformerOptions& options, const VocabularyNames& vocabulary) {
  const LoadOptions names = LoadOptions().key_map(type.seq2seq->family->keys(options));
  StateDict tensors;
  add_vocabulary(tensors, model, vocabulary);
  add_positions(tensors, model, *type.seq2seq);
  for (const auto& item : seq2seq_parts(model, type, options))
    tensors.insert(item.key(), item.value());
  change_back(tensors, names);
  return tensors;
}

StateDict seq2seq_parts(const TransformerImpl& model, const hf::ModelType& type,
                        const TransformerOptions& options) {
  const LoadOptions names = LoadOptions().key_map(type.seq2seq->family->keys(options));
  StateDict tensors;
  for (const auto& item : model.named_parameters()) {
    const bool is_of_vocabulary = item.key().find(".token_embedding.") != std::string::npos ||
                                  item.key() == "final_layer.weight";
    if (is_of_vocabulary) continue;
    const auto in_file = io::names_in_file(item.key(), names);
    TORCH_CHECK_VALUE(!in_file.empty(), "[save_pretrained] the model must be one of model_type ",
                      type.type, ", which has no ", item.key());
    const at::Tensor tensor = item.value().detach().to(at::kFloat);
    add_packed(tensors, in_file, tensor, tensor.size(0) / 3);
  }
  for (const AbsentBias& bias : absent_biases(*type.seq2seq->family, options)) {
    if (!tensors.contains(bias.name)) continue;
    TORCH_CHECK_VALUE(tensors[bias.name].eq(0).all().item<bool>(), "[save_pretrained] ", bias.name,
                      " must be zeros: keys of model_type ", type.type,
                      " have no bias. Got another");
    tensors.erase(bias.name);
  }
  return tensors;
}

void check_seq2seq_tensors(const char* caller, const std::string& folder, const StateDict& tensors,
                           const Settings& config, const hf::ModelType& type,
                           const TransformerOptions& options, const VocabularyNames& names) {
  const io::MemorySource source(tensors, torch::nn::Module());
  const Seq2SeqStructure& structure = *type.seq2seq;
  const ZeroBiases whole(source, absent_biases(*structure.family, options));
  const Vocabulary vocabulary(whole, names);
  seq2seq_plan(caller, folder, config, structure, options, vocabulary,
               seq2seq_load_options(*structure.family, options, vocabulary));
}

void save_pretrained(const Seq2SeqModel& model, const std::string& folder,
                     const SavePretrainedOptions& options) {
  const torch::NoGradGuard no_grad;
  check_seq2seq_options(model, options);
  check_target(model.origin.folder, folder, options);
  SavedSeq2Seq saved = completed(model, options);
  PretrainedFolder contents;
  contents.tensors = seq2seq_tensors(*model.model, saved.type, saved.options, saved.names);
  check_seq2seq_tensors(kSaveSeq2Seq, folder, contents.tensors, saved.settings, saved.type,
                        saved.options, saved.names);
  const Settings config =
      model.origin.config.empty()
          ? Settings::of_object(kSaveSeq2Seq, {{"pad_token_id", pad_of(model)}})
          : Settings::parse(kSaveSeq2Seq, "the configuration of the model", model.origin.config);
  contents.texts["generation_config.json"] = saved_generation(
      model.origin.generation_config, config, model.generation, saved.options.tgt_vocab(),
      saved.has_other_pad && model.pad >= 0 ? std::optional(model.pad) : std::nullopt);
  contents.config = std::move(saved.object);
  contents.max_shard_bytes = options.max_shard_bytes();
  copy_input_files(contents, folder, options.tokenizer_from(), model.origin.folder);
  write_pretrained(kSaveSeq2Seq, folder, contents);
}

}  // namespace posenc
