#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/config/settings.h"
#include "models/sentence/colbert.h"
#include "models/sentence/modules.h"
#include "models/sentence/stages/stage_kind.h"
#include "posenc/models/sentence_folder.h"

namespace posenc {

/// The list of a model's stages. Throws c10::ValueError for two of one name, a type that is not
/// sentence-transformers' own, and a path that leaves the folder.
SentenceModules checked_modules(const char* caller, const std::string& folder);

/// The settings of a whole model, config_sentence_transformers.json, or none.
Settings model_settings(const char* caller, const std::string& folder);

/// BGE-M3's heads beside a dense model, for weights of tokens and for vectors of tokens.
constexpr const char *kLexicalHead = "sparse_linear.pt", *kTokenHead = "colbert_linear.pt";

/// The file of its weights of tokens, by which a dense model can be read as a sparse one.
std::string lexical_weights_in(const std::string& folder);

/// The class of sentence-transformers of a kind.
std::string kind_name(SentenceKind kind);

/// inspect_sentence_kind() for the public function `caller`.
SentenceKind sentence_kind(const char* caller, const std::string& folder, const std::string& base);

/// The stages that make vectors: those listed or, without a modules.json and for a cross-encoder,
/// an encoder and what it is given. Throws c10::ValueError for a folder that cannot be read as a
/// model of the kind `as`, if it is set.
SentenceModules sentence_modules(const char* caller, const std::string& folder,
                                 std::optional<SentenceKind> as, const std::string& base = "");

/// The routes through the stages of a model that is read as one of that kind. Throws
/// c10::ValueError for a stage that posenc lacks and for settings, WeightsError for files.
std::vector<SentenceRoute> sentence_routes(const char* caller, const SentenceModules& modules,
                                           SentenceKind kind, const std::string& base,
                                           const ColbertSettings& colbert);

/// The stages of a model of that kind after the first, `own.front()`, which `route` has already,
/// and which is itself one if it is given the ids alone. Throws c10::ValueError for one that posenc
/// lacks and for settings.
std::vector<SentenceStageFolder> stages_after_first(const char* caller,
                                                    const SentenceModules& modules,
                                                    const std::vector<SentenceModule>& own,
                                                    const SentenceRoute& route, SentenceKind model);

/// Whether `architectures` in config.json names a causal language model first.
bool is_generator(const Settings& config);

/// The settings of a stage of that kind in `folder`; none where it may lack them.
Settings settings_of_stage(const char* caller, const std::string& folder, const StageKind& kind);

/// The activation whose class in torch.nn a setting names, such as
/// `torch.nn.modules.activation.Tanh`. Throws c10::ValueError for another path.
Activation activation_at(const Settings& config, const char* name);

/// The folder of a stage.
std::string stage_folder(const SentenceModules& modules, const SentenceModule& stage);

}  // namespace posenc
