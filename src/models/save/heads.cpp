#include "models/save/heads.h"

#include <c10/util/Exception.h>

#include <utility>

#include "models/options/values.h"
#include "posenc/core/skip_init.h"

namespace posenc {
namespace {

using head::Kind;

// What decides what a head computes, apart from the values of its tensors.
std::vector<std::pair<const char*, double>> values_of_head(const EncoderHeadOptions& options) {
  std::vector<std::pair<const char*, double>> values;
  const auto add = [&](const char* name, auto value) {
    values.emplace_back(name, static_cast<double>(value));
  };
  add("d_model", options.d_model());
  add("outputs", options.outputs());
  add("rows", options.rows());
  add("dense", options.dense().value_or(-1));
  add("dense_bias", options.dense() && options.dense_bias());
  add("dense2", options.dense2().value_or(-1));
  add("activation", options.activation());
  add("norm", options.norm().value_or(-1.0));
  add("norm_bias", options.norm() && options.norm_bias());
  add("bias", options.bias());
  add("output_activation", options.output_activation());
  add("columns_beside_table", options.columns_beside_table());
  return values;
}

void check_same_head(const EncoderHeadOptions& own, const HeadConfig& config,
                     const Settings& settings) {
  const auto expected = values_of_head(own), got = values_of_head(config.options);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    TORCH_CHECK_VALUE(expected[i].second == got[i].second, settings.where(), expected[i].first,
                      " of the head must be that of the Classifier, ", expected[i].second, ". Got ",
                      got[i].second);
  }
}

// The options of the norm, which are those of the head.
void check_parts_of_head(const EncoderHeadImpl& head, const Settings& settings) {
  const SkipInit skip;
  const std::string other = first_with_other_options(head, *EncoderHead(head.options));
  TORCH_CHECK_VALUE(other.empty(), settings.where(), "the options of ", other,
                    " of the head must be those that the head gives it. Got others");
}

}  // namespace

std::string head_class(const std::string& base_class, const hf::ModelType& model,
                       const HeadConfig& head) {
  const bool is_of_pair = model.prefix == std::string_view("vision_model.");
  TORCH_CHECK_VALUE(head.kind != Kind::Image || !is_of_pair,
                    "[save_pretrained] a Classifier of images must have an encoder that is not a "
                    "part of a pair, to be a class of transformers. Got a ",
                    base_class);
  std::string stem = base_class;
  for (const std::string ending : {"Model", "Encoder"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  }
  const std::string own = head.structure.class_ending;
  if (!own.empty() && stem.ends_with(own)) return stem;  // DPRReader
  return stem + (own.empty() ? class_ending(head.kind) : own);
}

void set_labels(nlohmann::json& config, const ClassifierOptions& options) {
  if (!has_labels(options.kind())) return;
  const int64_t count = options.head().outputs();
  nlohmann::json names = nlohmann::json::object(), numbers = nlohmann::json::object();
  for (int64_t i = 0; i < count; ++i) {
    const std::string label = options.labels().empty()
                                  ? "LABEL_" + std::to_string(i)
                                  : options.labels()[static_cast<std::size_t>(i)];
    names[std::to_string(i)] = label;
    numbers[label] = i;
  }
  config.erase("num_labels");  // which follows from them
  config["id2label"] = names;
  config["label2id"] = numbers;
  config.erase("problem_type");
  if (options.problem()) config["problem_type"] = problem_name(*options.problem());
}

std::set<std::string> names_of_head(const HeadStructure& structure) {
  std::set<std::string> names = {structure.bias};
  for (const std::string layer :
       {structure.dense, structure.dense2, structure.norm, structure.other_norm, structure.out,
        structure.other_out, structure.beside_table}) {
    for (const char* part : {".weight", ".bias", ".gamma", ".beta"}) names.insert(layer + part);
  }
  return names;
}

StateDict head_tensors(const ClassifierImpl& model, const HeadConfig& config,
                       const Settings& settings) {
  const EncoderHeadImpl& head = *model.head;
  check_same_head(head.options, config, settings);
  check_parts_of_head(head, settings);
  const HeadStructure& structure = config.structure;
  StateDict tensors;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    if (tensor.defined()) tensors.insert(name, tensor.detach());
  };
  const auto add_both = [&](const std::string& name, const auto& layer) {
    if (!layer) return;
    add(name + ".weight", layer->weight);
    add(name + ".bias", layer->bias);
  };
  add_both(structure.dense, head.dense);
  add_both(structure.dense2, head.dense2);
  add_both(structure.norm, head.norm);
  const std::string out = structure.out, bias = structure.bias;
  // A decoder that transformers ties is left out; other tables are its own.
  if (!head.options.tied()) add(out + ".weight", head.weight);
  if (head.options.tied() && !config.options.tied()) {
    add(out + ".weight", model.encoder->embeddings->tokens->weight);
  }
  if (head.weight_beside_table.defined())  // transposed in the file
    add(structure.beside_table + std::string(".weight"), head.weight_beside_table.t());
  add(bias.empty() ? out + ".bias" : bias, head.bias);
  // transformers ties the two biases as it ties the weights; otherwise it adds that of the decoder.
  if (!bias.empty() && structure.has_both_biases && !config.options.tied())
    add(out + ".bias", head.bias);
  return tensors;
}

StateDict head_tensors(const DecoderImpl& model, const DecoderStructure& structure) {
  StateDict head;
  const std::string name = structure.head;
  if (!model.options.tied()) head.insert(name + ".weight", model.lm_head->weight.detach());
  if (model.options.head_bias()) head.insert(name + ".bias", model.lm_head->bias.detach());
  return head;
}

}  // namespace posenc
