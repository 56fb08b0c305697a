// load_classifier(): a head's tensors, and the encoder below it.

#include <memory>

#include "models/config/described_module.h"
#include "models/config/model_folder.h"
#include "models/encoder/folder.h"
#include "models/encoder/names.h"
#include "models/heads/config.h"
#include "models/heads/rows.h"
#include "models/seq2seq/load.h"
#include "posenc/core/skip_init.h"

namespace posenc {
namespace {

constexpr const char* kLoader = "load_classifier";

bool is_there(const EncoderFolder& open, const std::string& name) {
  return find_entry(open.source, open.options.prefix() + name) != nullptr;
}

// The names that a head's tensors have in a file, after the prefix.
class HeadNames {
 public:
  HeadNames(const EncoderFolder& open, const HeadConfig& config) : open_(open) {
    const auto& structure = config.structure;
    const auto& options = config.options;
    if (options.dense()) {
      add({structure.dense + std::string(".weight")}, "dense.weight");
      if (options.dense_bias()) add({structure.dense + std::string(".bias")}, "dense.bias");
    }
    if (options.norm()) add_norm(config);
    if (options.dense2()) {
      add({structure.dense2 + std::string(".weight")}, "dense2.weight");
      if (options.dense_bias()) add({structure.dense2 + std::string(".bias")}, "dense2.bias");
    }
    const std::string out = structure.out, other = structure.other_out;
    if (options.tied()) tied_.push_back(open.options.prefix() + out + ".weight");
    if (!options.tied()) {
      add(other.empty() ? std::vector<std::string>{out + ".weight"}
                        : std::vector<std::string>{out + ".weight", other + ".weight"},
          "weight");
    }
    if (options.columns_beside_table() > 0) add_beside_table(structure.beside_table);
    if (options.bias()) add_bias(out + ".bias", structure.bias);
  }

  /// The rules for the head's tensors alone.
  KeyMap map() const {
    KeyMap map = map_;
    map.emplace_back("*", "");
    return map;
  }
  /// Those of tensors that are others of the file: the output layer of a tied head, and another
  /// name of its bias.
  const std::vector<std::string>& tied() const { return tied_; }
  std::string in_file(const std::string& name) const {
    for (const KeyRule& rule : map_) {
      if (rule.name == name) return open_.options.prefix() + rule.sources.items[0].pattern();
    }
    return name;
  }

 private:
  // The first of several names that is in the file.
  void add(const std::vector<std::string>& names, const std::string& to) {
    for (const std::string& name : names) {
      if (!is_there(open_, name)) continue;
      map_.emplace_back(name, to);
      return;
    }
    throw missing_tensor(open_.source, open_.options.prefix() + names.front());
  }
  // Old files have gamma and beta, as TensorFlow calls them.
  void add_norm(const HeadConfig& config) {
    const std::string name = config.structure.norm, other = config.structure.other_norm;
    add({name + ".weight", name + ".gamma", other + ".weight"}, "norm.weight");
    if (config.options.norm_bias()) {
      add({name + ".bias", name + ".beta", other + ".bias"}, "norm.bias");
    }
  }
  void add_beside_table(const std::string& module) {
    const std::string name = module + ".weight";
    if (!is_there(open_, name)) throw missing_tensor(open_.source, open_.options.prefix() + name);
    map_.emplace_back(KeySource::transposed(name), "weight_beside_table");
  }
  // transformers ties a decoder's bias to the head's, unless a file has two that differ.
  void add_bias(const std::string& own, const std::string& other) {
    if (!other.empty()) tied_.push_back(open_.options.prefix() + other);
    add(other.empty() ? std::vector<std::string>{own} : std::vector<std::string>{own, other},
        "bias");
  }

  const EncoderFolder& open_;
  KeyMap map_;
  std::vector<std::string> tied_;
};

// Whether the file has an output layer that is not the table of tokens.
bool has_own_table(const EncoderFolder& open, const HeadConfig& config, const at::Tensor& table) {
  for (const char* out : {config.structure.out, config.structure.other_out}) {
    const std::string name = open.options.prefix() + out + ".weight";
    if (find_entry(open.source, name) != nullptr) return differs(open, name, table);
  }
  return false;
}

EncoderHead head_in(const EncoderFolder& open, const HeadConfig& config) {
  const HeadNames names(open, config);
  const auto make = [&](const Settings*) { return EncoderHead(config.options).ptr(); };
  const auto plan = plan_of(
      {open.caller, open.folder, nullptr, make, "labels and sizes of the head"}, open.source,
      LoadOptions().prefix(open.options.prefix()).cast(true).key_map(names.map()),
      {.tied = {}, .optional = {}, .is_new = true});
  const SkipInit skip;
  EncoderHead head(config.options);
  plan->apply_to(*head);
  open.leftovers.add_head(*plan, "head.");
  for (const std::string& name : names.tied()) open.leftovers.add_read(name);
  check_finite(
      open.caller, *head, open.path, [&](const std::string& name) { return names.in_file(name); },
      [](const std::string&) { return false; });
  return head;
}

// The encoder-decoder below a head. The output layer stays the decoder's table, since no class with
// a head has one.
Encoder with_decoder(const EncoderFolder& open) {
  const hf::ModelType& type = open.config.model;
  const Seq2SeqStructure& structure = *type.seq2seq;
  const Settings config = seq2seq_settings(open.config.whole, type.type);
  const std::string own = structure.family->prefix;  // which its keys have, and a file may lack
  const bool has_own = open.prefix.ends_with(own);
  const std::string before =
      has_own ? open.prefix.substr(0, open.prefix.size() - own.size()) : open.prefix;
  const auto in_file = [&](const std::string& name) {
    return before + (has_own || !name.starts_with(own) ? name : name.substr(own.size()));
  };
  const io::RenamedSource selected(open.source, "", selection_of(before));
  const io::RenamedSource renamed(selected, "",
                                  has_own ? KeyMap() : structure.family->renames(structure));
  VocabularyNames names = structure.family->vocabulary(config, structure);
  names.head = names.decoder;
  const PlannedTransformer loaded =
      planned_transformer(open.caller, open.folder, open.path, config, structure,
                          *open.config.options.transformer(), names, renamed);
  open.leftovers.add_model(*loaded.plan, open.prefix, "encoder.transformer.", in_file);
  for (const std::string& name : {names.shared, names.encoder, names.decoder})
    open.leftovers.add_read(in_file(name));
  const SkipInit skip;
  EncoderOptions options = open.config.options;
  options.transformer()->tie(loaded.model->options.tie());
  Encoder model(options);
  model->transformer = std::dynamic_pointer_cast<TransformerImpl>(
      model->replace_module("transformer", loaded.model.ptr()));
  model->eval();
  return model;
}

// The module of parts that have been loaded.
Classifier assembled(const HeadConfig& config, const Encoder& encoder, const EncoderHead& head) {
  const SkipInit skip;
  Classifier model(ClassifierOptions(encoder->options, config.kind, config.options)
                       .labels(config.labels)
                       .problem(config.problem));
  model->encoder =
      std::dynamic_pointer_cast<EncoderImpl>(model->replace_module("encoder", encoder.ptr()));
  model->head =
      std::dynamic_pointer_cast<EncoderHeadImpl>(model->replace_module("head", head.ptr()));
  model->eval();
  return model;
}

}  // namespace

EncoderHead load_head(const std::string& folder, head::Kind kind, const LoadOptions& options) {
  EncoderHead head{nullptr};
  const auto read = [&](EncoderFolder& open) {
    head = head_in(open, read_head_config(open.config, kind));
    for (const auto& entry : open.source.entries()) open.leftovers.add_read(entry.name);
  };
  read_encoder_folder(kLoader, folder, LoadOptions(options).report(nullptr), read,
                      [&](const Settings& config) { return head_part(config, kind); });
  head->eval();
  return head;
}

Classifier load_classifier(const std::string& folder, std::optional<head::Kind> kind,
                           const LoadOptions& options) {
  Classifier model{nullptr};
  const auto read = [&](EncoderFolder& open) {
    HeadConfig config = read_head_config(open.config, kind);
    if (config.options.rows() != head::Rows::Pooled && lacks_pooler(open)) {
      open.config.options.pooling(encoder::Pooling::None);
    }
    if (config.options.tied())
      keep_tied_output(open, open.options.prefix() + config.structure.out + ".weight");
    const Encoder encoder =
        config.structure.is_on_decoder ? with_decoder(open) : encoder_in(open, "encoder.");
    if (config.options.tied() && has_own_table(open, config, encoder->embeddings->tokens->weight)) {
      config.options.tied(false);
    }
    model = assembled(config, encoder, head_in(open, config));
  };
  read_encoder_folder(kLoader, folder, options, read,
                      [&](const Settings& config) { return head_part(config, kind); });
  return model;
}

}  // namespace posenc
