// merge_adapters().

#include <c10/util/Exception.h>

#include <algorithm>
#include <set>

#include "models/config/model_folder.h"
#include "models/encoder/names.h"
#include "models/lora/adapted_folder.h"
#include "models/lora/adapted_source.h"
#include "models/lora/heads.h"
#include "models/save/copied_files.h"
#include "models/save/saved_settings.h"
#include "models/save/write_folder.h"
#include "models/seq2seq/load.h"
#include "models/types/model_types.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

constexpr const char* kMerger = "merge_adapters";
constexpr const char* kTied = "tie_word_embeddings";
constexpr int64_t kShard = 50'000'000'000;

// The names of a model's tables of tokens, of the output layers that are tied to them, and of the
// bias of one, which is tied as its weight is.
struct TiedNames {
  std::vector<std::string> tables, outputs;
  std::string bias, other_bias;
};

// Of an encoder-decoder: not the encoder alone, as T5EncoderModel saves it.
bool is_whole(const Settings& config) { return config.flag("is_encoder_decoder", true); }

// `is_generator`: whether the model has an output layer although `architectures` names none.
TiedNames tied_names(const Settings& config, const hf::ModelType& model, bool is_generator) {
  TiedNames names;
  if (model.seq2seq != nullptr) {
    const Settings own =
        is_whole(config) ? seq2seq_settings(config, model.type) : config.of(model.type);
    const auto found = model.seq2seq->family->vocabulary(own, *model.seq2seq);
    names.tables = {found.shared, found.encoder, found.decoder};
    names.outputs = {found.encoder, found.decoder, found.head};
    return names;
  }
  for (const char* table :
       {"embeddings.word_embeddings.weight", "embed_tokens.weight",
        "embeddings.tok_embeddings.weight", "word_embeddings.weight", "word_embedding.weight",
        "embeddings.weight", "wte.weight", "embed_in.weight"})
    names.tables.emplace_back(table);
  const auto& classes = config.value("architectures");
  const std::string own = classes.is_array() && !classes.empty() && classes[0].is_string()
                              ? classes[0].get<std::string>()
                              : "";
  if ((own.ends_with("ForMaskedLM") || own.ends_with("ForPreTraining")) && model.heads != nullptr) {
    const HeadStructure& head = model.heads->masked;
    names.outputs.push_back(head.out + std::string(lora::kWeight));
    if (head.has_both_biases && *head.bias != '\0') {
      names.bias = head.bias;
      names.other_bias = head.out + std::string(lora::kBias);
    }
  }
  const DecoderStructure* const decoder = model.decoder;
  const bool may_have_head = is_generator || own.empty() || own.ends_with("ForCausalLM") ||
                             (decoder != nullptr && own == decoder->class_name);
  if (decoder != nullptr && may_have_head)
    names.outputs.push_back(decoder->head + std::string(lora::kWeight));
  return names;
}

// Whether an adapter was trained on the class with an output layer.
bool are_of_generator(const lora::AdaptedSource& source) {
  return std::any_of(source.adapters().begin(), source.adapters().end(),
                     [](const auto& one) { return one.adapter.config.task_type() == "CAUSAL_LM"; });
}

// PEFT's forward has the base's table in a tied output layer, which is therefore written apart.
std::vector<std::string> untie(lora::AdaptedSource& source, nlohmann::json& object,
                               const TiedNames& names) {
  std::vector<std::string> untied;
  for (const std::string& table : names.tables) {
    if (table.empty() || !source.is_changed(table)) continue;
    for (const std::string& output : names.outputs) {
      if (output.empty() || output == table || !source.keep(output, table)) continue;
      object[kTied] = false;
      untied.push_back(output);
    }
  }
  if (untied.empty() || names.bias.empty()) return untied;
  source.keep(names.other_bias, names.bias, /*with_changes=*/true);
  source.keep(names.bias, names.other_bias, /*with_changes=*/true);
  return untied;
}

// A head's tensors beside an encoder whose names have no prefix: the class with the head has it.
std::string prefix_for(const io::TensorSource& source, std::size_t count,
                       const hf::ModelType& model) {
  const auto& entries = source.entries();
  const bool has_own = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
    return *model.prefix != '\0' && entry.name.starts_with(model.prefix);
  });
  return entries.size() > count && !has_own ? model.prefix : "";
}

lora::ModelNames names_of(const Settings& config, const hf::ModelType& model,
                          const io::TensorSource& file) {
  lora::ModelNames names = {config.text("model_type", ""), {model.prefix, model.old_prefix}};
  names.decoder = model.decoder;
  if (model.seq2seq != nullptr && is_whole(config)) {
    const Seq2SeqFamily& family = *model.seq2seq->family;
    names.prefixes.emplace_back(family.prefix);
    const Settings own = seq2seq_settings(config, model.type);
    const io::RenamedSource by_class(file, "", family.renames(*model.seq2seq));
    names.later = seq2seq_later_layers(family, family.options(own, *model.seq2seq), by_class);
  } else if (model.layers != nullptr || *model.part != '\0') {
    const EncoderConfig own = read_encoder_config(config);
    names.map = encoder_key_map(own);
    names.later = encoder_later_layers(own, file, encoder_prefix(own, file, ""));
  }
  return names;
}

// Has `use` called with the tensors of the model, of which all have been checked.
template <typename Use>
auto with_source(const char* caller, const AdaptedFolder& place, const Use& use) {
  auto adapters = lora::load_all(caller, place.options.adapters());
  const Settings config = lora::with_heads(model_config(caller, place.folder), adapters);
  const std::string type = config.text("model_type", "");
  const hf::ModelType* const model = hf::find_model_type(type);
  TORCH_CHECK_VALUE(model != nullptr, config.where(),
                    "model_type must be one that posenc knows. Got ", type);
  const std::string path = weights_in(caller, place.folder);
  return io::in_context(caller, path, [&] {
    const io::FileSource file(path);
    lora::AdaptedSource source(file, std::move(adapters), names_of(config, *model, file));
    std::set<std::string> all;
    for (const auto& entry : source.entries()) all.insert(entry.name);
    source.check_targets(all);
    return use(config, *model, file, source);
  });
}

PretrainedFolder merged_contents(const AdaptedFolder& place, MergedFolder& merged) {
  return with_source(kMerger, place,
                     [&](const Settings& config, const hf::ModelType& model,
                         const io::TensorSource& file, lora::AdaptedSource& source) {
                       PretrainedFolder contents;
                       contents.config = config.object();
                       const std::string prefix = prefix_for(source, file.entries().size(), model);
                       merged.untied = untie(source, contents.config,
                                             tied_names(config, model, are_of_generator(source)));
                       for (std::size_t i = 0; i < source.entries().size(); ++i) {
                         const auto& entry = source.entries()[i];
                         if (entry.is_unreadable) io::refuse_unreadable_entry(entry);
                         if (!entry.is_tensor) continue;
                         const at::Tensor tensor = source.tensor(i);
                         merged.changed += source.is_changed(i) ? 1 : 0;
                         const std::string name =
                             i < file.entries().size() ? prefix + entry.name : entry.name;
                         contents.tensors.insert(
                             name, tensor.is_floating_point() ? tensor.to(at::kFloat) : tensor);
                       }
                       set_dtype(contents.config);
                       contents.max_shard_bytes = kShard;
                       return contents;
                     });
}

}  // namespace

MergedFolder merge_adapters(const std::string& folder, const std::string& out,
                            const LoadOptions& options) {
  check_is_folder(kMerger, folder);
  check_folder_options(kMerger, options);
  TORCH_CHECK_VALUE(options.prefix().empty() && options.key_map().empty(), "[", kMerger,
                    "] prefix and key_map must be left out. Got another");
  TORCH_CHECK_VALUE(!io::may_exist(out), "[", kMerger,
                    "] out must be a folder that is not there yet. Got ", out);
  const FolderParts parts = parts_of(kMerger, folder, options.base());
  TORCH_CHECK_VALUE(parts.models.size() == 1, "[", kMerger, "] ", folder,
                    ": the model must have one encoder. Got ", parts.models.size(),
                    " of different routes");
  const std::string& inner = parts.models.begin()->first;
  const AdaptedFolder place = adapted_folder(kMerger, path_of_model(folder, inner), options);
  TORCH_CHECK_VALUE(!place.options.adapters().empty(), "[", kMerger, "] ", folder,
                    ": there must be an adapter, in the options or in the folder. Got no adapter");
  const auto copied = files_of_model(kMerger, folder, parts, options.base());
  MergedFolder merged;
  const PretrainedFolder contents = merged_contents(place, merged);
  return io::in_context(kMerger, out, [&] {
    FolderWriter written(out);
    for (const auto& [name, path] : copied) written.add_copy(name, path.string());
    written.add_model(inner, contents);
    written.commit();
    return merged;
  });
}

void rewrite_adapter(const std::string& folder, const std::string& out,
                     const LoadOptions& options) {
  constexpr const char* kRewriter = "rewrite_adapter";
  check_is_folder(kRewriter, folder);
  const AdaptedFolder place = adapted_folder(kRewriter, folder, options);
  TORCH_CHECK_VALUE(place.options.adapters().size() == 1, "[", kRewriter, "] ", folder,
                    ": there must be one adapter. Got ", place.options.adapters().size());
  with_source(kRewriter, place,
              [&](const Settings&, const hf::ModelType&, const io::TensorSource&,
                  lora::AdaptedSource& source) {
                const LoraAdapter& adapter = source.adapters().front().adapter;
                save_adapter(adapter, out, adapter.config.base().empty() ? place.folder : "");
                return 0;
              });
}

}  // namespace posenc
