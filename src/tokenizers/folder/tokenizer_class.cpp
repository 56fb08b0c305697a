#include "tokenizers/folder/tokenizer_class.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

namespace posenc::text {
namespace {

constexpr std::string_view kBackend = "TokenizersBackend";

std::string_view without_fast(std::string_view name) {
  return name.ends_with("Fast") ? name.substr(0, name.size() - 4) : name;
}

// transformers' tokenizer_class_from_name().
std::optional<std::string_view> class_named(std::string_view name) {
  const std::vector<ClassName>& names = class_names();
  const auto found = std::ranges::find(names, name, &ClassName::name);
  if (found != names.end()) return found->tokenizer_class;
  if (name.ends_with("Fast")) return class_named(without_fast(name));
  return std::nullopt;
}

std::string_view or_backend(std::optional<std::string_view> found) {
  return !found || *found == "PythonBackend" ? kBackend : *found;
}

const ModelTypeClass* class_of_type(std::string_view model_type) {
  const std::vector<ModelTypeClass>& table = model_type_classes();
  const auto found = std::ranges::find(table, model_type, &ModelTypeClass::model_type);
  return found == table.end() ? nullptr : &*found;
}

bool is_untrusted(std::string_view name) {
  return std::ranges::count(untrusted_model_types(), name) > 0;
}

// Whether transformers knows of this path that its settings are wrong.
bool has_wrong_settings(std::string path) {
  std::ranges::transform(path, path.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view begin :
       {"deepseek-ai/deepseek-r1-distill-llama-", "deepseek-ai/deepseek-coder-",
        "naver-clova-ix/donut-", "salesforce/blip2-opt-", "salesforce/blip2-flan-t5-",
        "salesforce/instructblip-flan-t5-", "stepfun-ai/step-3.7-"}) {
    if (path.starts_with(begin)) return true;
  }
  return path == "allenai/dolma2-tokenizer" || path == "google/umt5-small";
}

bool has_code(const Settings& tokenizer_config) {
  const auto map = tokenizer_config.find("auto_map");
  if (map == tokenizer_config.end()) return false;
  if (map->is_array()) return true;
  return map->is_object() && map->contains("AutoTokenizer") && !(*map)["AutoTokenizer"].is_null();
}

// A setting that Python takes for false is one that is missing.
std::optional<std::string> name_in(const Settings& object, const char* key) {
  std::optional<std::string> name = string_of(object, key);
  return name && name->empty() ? std::nullopt : name;
}

}  // namespace

std::string tokenizer_class_of(const FolderFiles& files, const Settings& config,
                               const Settings& tokenizer_config) {
  const std::optional<std::string> own = name_in(tokenizer_config, "tokenizer_class");
  const std::optional<std::string> of_model = name_in(config, "tokenizer_class");
  const std::optional<std::string> declared = own ? own : of_model;
  std::string type = string_of(config, "model_type").value_or("");
  if (type == "mistral" && config.contains("layer_types")) type = "ministral";
  const std::string name = string_of(config, "model_name").value_or("");
  const ModelTypeClass* const of_type = class_of_type(type);
  const std::string_view registered = of_type ? without_fast(of_type->tokenizer_class) : "";
  const bool untrusted = is_untrusted(type) || is_untrusted(name);
  bool code = has_code(tokenizer_config);

  if (!code) {
    if (!config.empty() && has_wrong_settings(files.folder())) return std::string(kBackend);
    if (declared && without_fast(*declared) == "LlamaTokenizer" && !untrusted &&
        files.has("tokenizer.json") &&
        files.read("tokenizer.json").find("\"ByteLevel\"") != std::string::npos) {
      return std::string(kBackend);
    }
    if (declared && of_type && registered != without_fast(*declared)) {
      const auto is_generic = [](std::string_view found) {
        return found == kBackend || found == "PythonBackend" || found == "PreTrainedTokenizerFast";
      };
      if (!is_generic(registered)) {
        const std::optional<std::string_view> found =
            class_named(untrusted ? registered : *declared);
        if (found && !is_generic(*found)) return std::string(*found);
      }
      return std::string(kBackend);
    }
  }

  const bool is_known = (of_type && of_type->has_config) || (own && class_named(*own));
  if (code && !is_known && !is_untrusted(type)) {
    refuse("auto_map",
           "be absent, or the class one of transformers, as the folder's own code is not run",
           shown(tokenizer_config["auto_map"]));
  }
  if (own) return std::string(or_backend(class_named(without_fast(*own))));
  if (of_model) {
    const std::optional<std::string_view> found =
        class_named(*of_model == "PreTrainedTokenizerFast" ? *of_model : without_fast(*of_model));
    if (!found) refuse("tokenizer_class", "be a class of transformers", *of_model);
    return std::string(*found);
  }
  if (of_type && of_type->has_config) return std::string(or_backend(class_named(registered)));
  return std::string(kBackend);
}

}  // namespace posenc::text
