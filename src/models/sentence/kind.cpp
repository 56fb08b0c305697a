// Of which class of sentence-transformers a folder is, and as which it can be read.

#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>

#include "models/config/model_folder.h"
#include "models/lora/adapted_folder.h"
#include "models/sentence/colbert.h"
#include "models/sentence/stage_settings.h"
#include "models/sentence/transformer_settings.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

struct KindRow {
  SentenceKind kind;
  const char* name;    // in config_sentence_transformers.json
  const char* loader;  // of posenc
};

constexpr KindRow kKinds[] = {
    {SentenceKind::Dense, "SentenceTransformer", "load_sentence_encoder"},
    {SentenceKind::Sparse, "SparseEncoder", "load_sparse_encoder"},
    {SentenceKind::MultiVector, "MultiVectorEncoder", "load_multi_vector_encoder"},
    {SentenceKind::CrossEncoder, "CrossEncoder", "load_reranker"},
    {SentenceKind::MultiVector, "ColBERT", "load_multi_vector_encoder"},  // PyLate's
};

const KindRow& row_of(SentenceKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const KindRow& row) { return row.kind == kind; });
}

// The classes of transformers that config.json names.
std::vector<std::string> architectures_in(const char* caller, const std::string& folder,
                                          const std::string& base) {
  const fs::path model = config_folder(caller, folder, base);
  const Settings config = settings_or_none(caller, (model / "config.json").string());
  std::vector<std::string> names;
  const nlohmann::json& given = config.value("architectures");
  for (const auto& name : given.is_array() ? given : nlohmann::json::array())
    if (name.is_string()) names.push_back(name);
  return names;
}

bool any_ends_with(const std::vector<std::string>& names, const char* ending) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.ends_with(ending); });
}

// Of other folders sentence-transformers makes a model by layers that are drawn at random.
void check_kind(const char* caller, const std::string& folder, const std::string& base,
                SentenceKind own, SentenceKind as) {
  if (own == as || (own == SentenceKind::CrossEncoder && as == SentenceKind::Dense)) return;
  const bool is_masked =
      !has_modules(folder) && any_ends_with(architectures_in(caller, folder, base), "ForMaskedLM");
  const bool has_weights = own == SentenceKind::Dense && io::may_exist(lexical_weights_in(folder));
  if (as == SentenceKind::Sparse && (is_masked || has_weights)) return;
  if (as == SentenceKind::MultiVector && has_colbert_head(folder)) return;
  const char* const why = as == SentenceKind::Sparse || as == SentenceKind::MultiVector
                              ? ", all of whose layers are in the folder; sentence-transformers "
                                "draws those that others lack at random"
                              : "";
  TORCH_CHECK_VALUE(false, "[", caller, "] ", folder, ": must be a ", kind_name(as), why,
                    ". Got a ", kind_name(own), ", which ", row_of(own).loader, "() loads");
}

}  // namespace

std::string lexical_weights_in(const std::string& folder) {
  return (fs::path(folder) / kLexicalHead).string();
}

std::string kind_name(SentenceKind kind) { return row_of(kind).name; }

SentenceKind sentence_kind(const char* caller, const std::string& folder, const std::string& base) {
  const Settings config = model_settings(caller, folder);
  if (const auto type = config.text_if("model_type")) {
    for (const KindRow& row : kKinds)
      if (*type == row.name) return row.kind;
    config.refuse("model_type",
                  "must be SentenceTransformer, SparseEncoder, MultiVectorEncoder, CrossEncoder or "
                  "ColBERT");
  }
  if (is_pylate(config)) return SentenceKind::MultiVector;
  const std::vector<std::string> classes = architectures_in(caller, folder, base);
  if (std::find(classes.begin(), classes.end(), "HF_ColBERT") != classes.end())
    return SentenceKind::MultiVector;
  const bool ranks = !has_modules(folder) && (any_ends_with(classes, "ForSequenceClassification") ||
                                              any_ends_with(classes, "ForCausalLM"));
  return ranks ? SentenceKind::CrossEncoder : SentenceKind::Dense;
}

SentenceKind inspect_sentence_kind(const std::string& folder, const std::string& base) {
  return sentence_kind("inspect_sentence_kind", folder, base);
}

SentenceModules sentence_modules(const char* caller, const std::string& folder,
                                 std::optional<SentenceKind> as, const std::string& base) {
  check_is_folder(caller, folder);
  const SentenceKind own = sentence_kind(caller, folder, base);
  if (as) check_kind(caller, folder, base, own, *as);
  if (has_modules(folder) && own != SentenceKind::CrossEncoder)
    return checked_modules(caller, folder);
  return {folder, {{"Transformer", "", "", ""}}, false};
}

}  // namespace posenc
