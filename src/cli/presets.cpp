// posenc-budget: one command, a list of each kind
// posenc presets: lists the presets of tables, of rotary embeddings, of embeddings of encoders and
// of vision embeddings, the encoders and the decoders.

#include "posenc/positions/sinusoid/preset.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/print.h"
#include "cli/text_table.h"
#include "posenc/catalogue/relative_preset.h"
#include "posenc/models/classifier.h"
#include "posenc/models/decoder.h"
#include "posenc/models/encoder.h"
#include "posenc/models/encoder_embeddings_preset.h"
#include "posenc/models/relative_config.h"
#include "posenc/models/rotary_config.h"
#include "posenc/models/vision_embeddings_preset.h"
#include "posenc/positions/rotary/rotary_preset.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

// The default as a number if it is one; null if the parameter is required.
Json default_of(const PresetParam& param) {
  if (param.fallback.empty()) return nullptr;
  const Json number = Json::parse(param.fallback, nullptr, false);
  return number.is_number() ? number : Json(param.fallback);
}

Json json_of(const Preset& entry) {
  auto aliases = Json::array(), params = Json::array();
  for (const Preset& other : presets()) {
    if (other.recipe == entry.recipe && other.name != entry.name) aliases.push_back(other.name);
  }
  if (!entry.former_name.empty()) {
    aliases.push_back(entry.former_name);
  }
  for (const PresetParam& param : entry.params) {
    params.push_back(
        {{"name", param.name}, {"default", default_of(param)}, {"meaning", param.meaning}});
  }
  return {{"name", entry.name},     {"recipe", entry.recipe},   {"aliases", aliases},
          {"source", entry.source}, {"storage", entry.storage}, {"params", params},
          {"bound", entry.bound},   {"also", entry.also}};
}

void print_json() {
  auto list = Json::array();
  for (const auto& entry : presets()) list.push_back(json_of(entry));
  print("{}\n", list.dump(2));
}

// Presets under one heading, the recipe's name, have the same bits. Lines of no preset begin with
// #.
void print_table() {
  const auto& all = presets();
  for (std::size_t i = 0; i < all.size();) {
    print("{}# {}\n", i > 0 ? "\n" : "", all[i].recipe);
    for (const auto& param : all[i].params) {
      const bool needed = param.fallback.empty();
      print("#   --param {}={}  {}\n", param.name, needed ? "..." : param.fallback,
            param.meaning + (needed ? ", required" : ""));
    }
    if (!all[i].bound.empty()) print("#   equal within {}\n", all[i].bound);
    std::vector<std::vector<std::string>> rows;
    const std::string recipe = all[i].recipe;
    for (; i < all.size() && all[i].recipe == recipe; ++i) {
      rows.push_back({all[i].name, all[i].source, all[i].storage});
      for (const std::string& system : all[i].also) rows.push_back({"", system, ""});
      if (!all[i].former_name.empty()) rows.push_back({"", "formerly " + all[i].former_name, ""});
    }
    print("{}", text_table(rows, 2));
  }
}

// The model types that use a preset, from the result of rotary_models(), relative_models() or
// encoder_embeddings_models().
template <typename Model>
std::vector<std::string> model_types_of(const std::string& preset,
                                        const std::vector<Model>& models) {
  std::vector<std::string> names;
  for (const Model& model : models) {
    if (model.preset == preset) names.push_back(model.model_type);
  }
  return names;
}

template <typename Presets, typename Model>
void print_model_types(const char* kind, const Presets& presets, const std::vector<Model>& models) {
  for (const auto& preset : presets) {
    const auto names = model_types_of(preset.name, models);
    if (!names.empty()) print("\n# {} {}: {}\n", kind, preset.name, listed(names));
  }
}

void print_rotary_json() {
  auto list = Json::array();
  const auto models = rotary_models();
  for (const RotaryPreset& preset : rotary_presets()) {
    list.push_back({{"name", preset.name},
                    {"source", preset.source},
                    {"summary", preset.summary},
                    {"also", preset.also},
                    {"model_types", model_types_of(preset.name, models)}});
  }
  print("{}\n", list.dump(2));
}

void print_rotary_table() {
  std::vector<std::vector<std::string>> rows;
  for (const RotaryPreset& preset : rotary_presets()) {
    rows.push_back({preset.name, preset.source, preset.summary});
    for (const std::string& other : preset.also) rows.push_back({"", other, ""});
  }
  print("# rotary\n{}", text_table(rows, 2));
  print_model_types("rotary", rotary_presets(), rotary_models());
}

void print_relative_json() {
  auto list = Json::array();
  const auto models = relative_models();
  for (const RelativePreset& preset : relative_presets()) {
    list.push_back({{"name", preset.name},
                    {"source", preset.source},
                    {"summary", preset.summary},
                    {"settings", preset.settings},
                    {"tensors", preset.tensors},
                    {"outputs", preset.outputs},
                    {"model_types", model_types_of(preset.name, models)}});
  }
  print("{}\n", list.dump(2));
}

void print_relative_table() {
  std::vector<std::vector<std::string>> rows;
  for (const RelativePreset& preset : relative_presets())
    rows.push_back({preset.name, preset.source, preset.summary});
  print("# relative\n{}", text_table(rows, 2));
  print_model_types("relative", relative_presets(), relative_models());
}

// Of embedding and of vision embeddings.
template <typename Embeddings>
Json json_of_embeddings(const Embeddings& preset, const std::vector<std::string>& model_types) {
  return {{"name", preset.name},
          {"source", preset.source},
          {"formula", preset.formula},
          {"model_types", model_types}};
}

void print_embeddings_json() {
  auto list = Json::array();
  const auto models = encoder_embeddings_models();
  for (const EncoderEmbeddingsPreset& preset : encoder_embeddings_presets())
    list.push_back(json_of_embeddings(preset, model_types_of(preset.name, models)));
  print("{}\n", list.dump(2));
}

void print_vision_json() {
  auto list = Json::array();
  const auto models = vision_embeddings_models();
  for (const VisionEmbeddingsPreset& preset : vision_embeddings_presets()) {
    list.push_back(json_of_embeddings(preset, model_types_of(preset.name, models)));
    list.back()["resize"] = preset.resize;
  }
  print("{}\n", list.dump(2));
}

template <typename Embeddings, typename Model>
void print_embeddings(const char* title, const char* one, const std::vector<Embeddings>& presets,
                      const std::vector<Model>& models) {
  std::vector<std::vector<std::string>> rows;
  for (const Embeddings& preset : presets)
    rows.push_back({preset.name, preset.source, preset.formula});
  print("# {}\n{}", title, text_table(rows, 2));
  print_model_types(one, presets, models);
}

void print_embeddings_table() {
  print_embeddings("embeddings", "embeddings", encoder_embeddings_presets(),
                   encoder_embeddings_models());
}

void print_vision_table() {
  print_embeddings("vision embeddings", "vision embeddings", vision_embeddings_presets(),
                   vision_embeddings_models());
}

std::vector<std::string> heads_of(const std::string& model_type) {
  std::vector<std::string> names;
  for (const head::Kind kind : encoder_head_kinds(model_type)) {
    switch (kind) {
      case head::Kind::Sequence: names.emplace_back("sequence"); break;
      case head::Kind::Token: names.emplace_back("token"); break;
      case head::Kind::Question: names.emplace_back("question"); break;
      case head::Kind::Masked: names.emplace_back("masked"); break;
      case head::Kind::Image: names.emplace_back("image"); break;
      case head::Kind::Choice: names.emplace_back("choice"); break;
    }
  }
  return names;
}

void print_encoders_json() {
  auto list = Json::array();
  for (const std::string& type : encoder_model_types())
    list.push_back({{"model_type", type}, {"heads", heads_of(type)}});
  print("{}\n", list.dump(2));
}

void print_encoders_table() {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& type : encoder_model_types()) {
    const auto heads = heads_of(type);
    rows.push_back({type, heads.empty() ? "no heads" : listed(heads)});
  }
  print("# encoders\n{}", text_table(rows, 2));
}

// What sets a decoder's model type apart, with the defaults of its configuration class.
struct DecoderTraits {
  std::string type;
  std::vector<std::string> positions = {}, norms = {}, attention = {}, network = {}, output = {};
};

// Adds `text` if all layers are so, and with "in some layers" if only some are.
template <typename Is>
void add_if(std::vector<std::string>& texts, const std::vector<TransformerLayerOptions>& layers,
            const char* text, const Is& is) {
  const auto count = std::count_if(layers.begin(), layers.end(), is);
  if (count == 0) return;
  const bool all = count == static_cast<std::ptrdiff_t>(layers.size());
  texts.push_back(std::string(text) + (all ? "" : " in some layers"));
}

std::string norm_name(const TransformerLayerOptions& layer) {
  if (!layer.norm_affine()) return "LayerNorm without weights";
  switch (layer.norm_kind()) {
    case NormKind::RMS: return "RMS";
    case NormKind::RMSPlusOne: return "RMS, weight + 1";
    case NormKind::LayerPlusOne: return "LayerNorm, weight + 1";
    default: return layer.norm_bias().value_or(true) ? "LayerNorm" : "LayerNorm without bias";
  }
}

void add_norms(DecoderTraits& traits, const TransformerLayerOptions& layer) {
  traits.norms.push_back(norm_name(layer));
  if (layer.post_norms())
    traits.norms.emplace_back("before and after");
  else if (!layer.norm_first())
    traits.norms.emplace_back("after");
  if (layer.parallel() == Parallel::SharedNorm) traits.norms.emplace_back("parallel blocks");
  if (layer.parallel() == Parallel::TwoNorms)
    traits.norms.emplace_back("parallel blocks with a norm each");
}

void add_attention(DecoderTraits& traits, const std::vector<TransformerLayerOptions>& layers) {
  using Layer = TransformerLayerOptions;
  auto& texts = traits.attention;
  add_if(texts, layers, "window", [](const Layer& one) { return one.window().has_value(); });
  add_if(texts, layers, "norm of queries and keys",
         [](const Layer& one) { return one.qk_norm() && !one.qk_norm_whole(); });
  add_if(texts, layers, "norm of all queries and of all keys",
         [](const Layer& one) { return one.qk_norm() && one.qk_norm_whole(); });
  add_if(texts, layers, "after the rotation",
         [](const Layer& one) { return one.qk_norm_after_rotary(); });
  add_if(texts, layers, "softcap",
         [](const Layer& one) { return one.attention_softcap().has_value(); });
  add_if(texts, layers, "a scale of its own",
         [](const Layer& one) { return one.attention_scale().has_value(); });
  add_if(texts, layers, "biases of queries, keys and values",
         [](const Layer& one) { return one.qkv_bias().value_or(one.bias()); });
}

DecoderTraits traits_of(const std::string& type) {
  DecoderTraits traits{type};
  const auto options = decoder_options_from_hf(Json({{"model_type", type}}).dump());
  const TransformerEncoderOptions& stack = options.model().encoder();
  auto layers = stack.layers();
  if (layers.empty()) layers.push_back(stack.layer());
  const auto rotates = [](const TransformerLayerOptions& one) { return one.rotary().has_value(); };
  add_if(traits.positions, layers, "rotary", rotates);
  const auto rotating = std::find_if(layers.begin(), layers.end(), rotates);
  if (rotating != layers.end() &&
      rotating->rotary()->rotary().pairing() == rotary::Pairing::Adjacent)
    traits.positions.emplace_back("adjacent pairs");
  if (stack.alibi()) traits.positions.emplace_back("ALiBi");
  if (traits.positions.empty()) traits.positions.emplace_back("learned");
  add_norms(traits, layers.front());
  add_attention(traits, layers);
  traits.network.push_back(to_string(layers.front().activation()));
  if (layers.front().feed_forward() == FeedForward::Gated) traits.network.emplace_back("gated");
  if (options.tied()) traits.output.emplace_back("tied");
  if (options.head_bias()) traits.output.emplace_back("bias");
  if (options.logit_scale() != 1.0) traits.output.emplace_back("scaled");
  if (options.logit_softcap()) traits.output.emplace_back("softcap");
  return traits;
}

void print_decoders_json() {
  auto list = Json::array();
  for (const std::string& type : decoder_model_types()) {
    const DecoderTraits traits = traits_of(type);
    list.push_back({{"model_type", type},
                    {"positions", traits.positions},
                    {"norms", traits.norms},
                    {"attention", traits.attention},
                    {"network", traits.network},
                    {"output", traits.output}});
  }
  print("{}\n", list.dump(2));
}

void print_decoders_table() {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& type : decoder_model_types()) {
    const DecoderTraits traits = traits_of(type);
    rows.push_back({type, listed(traits.positions), listed(traits.norms), listed(traits.network)});
  }
  print("# decoders\n{}", text_table(rows, 2));
}

struct PresetsArguments {
  bool json = false;
  bool rotary = false, relative = false, embeddings = false, vision = false, encoders = false,
       decoders = false;
};

void print_presets(const PresetsArguments& arguments) {
  const bool all = !arguments.rotary && !arguments.relative && !arguments.embeddings &&
                   !arguments.vision && !arguments.encoders && !arguments.decoders;
  if (arguments.json) {
    if (all) return print_json();
    if (arguments.relative) return print_relative_json();
    if (arguments.vision) return print_vision_json();
    if (arguments.encoders) return print_encoders_json();
    if (arguments.decoders) return print_decoders_json();
    return arguments.rotary ? print_rotary_json() : print_embeddings_json();
  }
  if (all) print_table();
  if (all) print("\n");
  if (all || arguments.rotary) print_rotary_table();
  if (all) print("\n");
  if (all || arguments.relative) print_relative_table();
  if (all) print("\n");
  if (all || arguments.embeddings) print_embeddings_table();
  if (all) print("\n");
  if (all || arguments.vision) print_vision_table();
  if (all) print("\n");
  if (all || arguments.encoders) print_encoders_table();
  if (all) print("\n");
  if (all || arguments.decoders) print_decoders_table();
}

void add_presets(CLI::App& app) {
  auto arguments = std::make_shared<PresetsArguments>();
  auto* sub = app.add_subcommand(
      "presets",
      "List the presets: their origin, how the original system stores the table, and their "
      "parameters. Presets under one heading, a line that begins with #, have the same bits. "
      "Then the rotary embeddings, the relative positions, the embeddings of encoders and the "
      "vision embeddings, with the model types that use them, the encoders, with the heads that "
      "can be loaded, and the decoder-only language models.");
  sub->add_flag(
      "--json", arguments->json,
      "print an array of {name, recipe, aliases, source, storage, params, bound, also}; "
      "with --rotary of {name, source, summary, also, model_types}, with --relative of {name, "
      "source, "
      "summary, "
      "settings, tensors, outputs}, with --embeddings of {name, "
      "source, formula, model_types}, with --vision the same and resize, the rule by which "
      "positions are resized, with --encoders of {model_type, heads}, with --decoders of "
      "{model_type, "
      "positions, norms, attention, network, output}, by the defaults of the class");
  auto* rotary = sub->add_flag("--rotary", arguments->rotary, "list the rotary embeddings only");
  auto* relative =
      sub->add_flag("--relative", arguments->relative, "list the relative positions only");
  relative->excludes(rotary);
  auto* embeddings = sub->add_flag("--embeddings,--fronts", arguments->embeddings,
                                   "list the embeddings of encoders only");
  embeddings->excludes(rotary)->excludes(relative);
  auto* vision = sub->add_flag("--vision", arguments->vision, "list the vision embeddings only");
  vision->excludes(rotary)->excludes(relative)->excludes(embeddings);
  auto* encoders = sub->add_flag("--encoders", arguments->encoders, "list the encoders only");
  encoders->excludes(rotary)->excludes(relative)->excludes(embeddings)->excludes(vision);
  auto* decoders =
      sub->add_flag("--decoders", arguments->decoders, "list the decoder-only models only");
  for (auto* other : {rotary, relative, embeddings, vision, encoders}) decoders->excludes(other);
  sub->footer("Example:\n  posenc presets --json");
  sub->callback([arguments] { print_presets(*arguments); });
}

const Command kPresets{3, add_presets};

}  // namespace
}  // namespace posenc::cli
