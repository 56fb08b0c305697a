// The Router of sentence-transformers: which stages a text goes through.

#include <c10/util/Exception.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/config/settings.h"
#include "models/sentence/modules.h"
#include "models/sentence/transformer_settings.h"
#include "weights/common/file.h"
#include "weights/common/json.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;
using sentence::Task;

constexpr uint64_t kMostRouter = 1'000'000;  // bytes
constexpr const char* kText = "text";        // the modality of texts
constexpr const char* kNone = "None";        // in keys of route_mappings

// The file of a Router; releases before 5 called it config.json.
Settings router_settings(const char* caller, const fs::path& folder) {
  Settings found = settings_or_none(caller, (folder / "router_config.json").string());
  return found.empty() ? Settings(caller, (folder / "config.json").string()) : found;
}

// The names of routes in the order of the file, of which the first may be the default.
std::vector<std::string> names_in_order(const Settings& config) {
  const auto tree = io::json_tree<nlohmann::ordered_json>(io::read_text(config.path(), kMostRouter),
                                                          "its settings");
  std::vector<std::string> names;
  for (const auto& [name, ids] : tree.at("structure").items()) names.push_back(name);
  return names;
}

// The two entries of a tuple as Python prints it, such as ('query', None), without quotation marks;
// of a tuple in it only the beginning.
std::pair<std::string, std::string> tuple_in(const Settings& mappings, const std::string& key) {
  const auto unquoted = [](std::string text) {
    const auto begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
    text = begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
    const bool is_quoted =
        text.size() > 1 && text.front() == text.back() && (text[0] == '\'' || text[0] == '"');
    return is_quoted ? text.substr(1, text.size() - 2) : text;
  };
  const auto comma = key.find(',');
  if (comma == std::string::npos || key.front() != '(' || key.back() != ')')
    mappings.refuse(key, "must be a tuple of a task and a modality, such as ('query', None)");
  return {unquoted(key.substr(1, comma - 1)),
          unquoted(key.substr(comma + 1, key.size() - comma - 2))};
}

// The stages of a route, which are in folders of their names.
std::vector<SentenceModule> stages_in(const Settings& config, const Settings& ids,
                                      const std::string& route, const std::string& path) {
  const nlohmann::json& list = ids.value(route);
  if (!list.is_array()) ids.refuse(route, "must be a list of the names of stages");
  const Settings types = config.inside("types");
  std::vector<SentenceModule> stages;
  for (const nlohmann::json& id : list) {
    if (!id.is_string() || !types.has(id.get<std::string>()))
      ids.refuse(route, "must be names that are in `types`");
    const auto name = id.get<std::string>();
    SentenceModule stage =
        module_of(types.text(name), (fs::path(path) / name).generic_string(), name);
    check_module(config.source(), stage);
    stage.is_routed = true;
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace

const SentenceRouter::Route* SentenceRouter::route(Task task) const {
  const auto named = [&](const std::string& name) {
    const auto found = std::find_if(routes.begin(), routes.end(),
                                    [&](const Route& route) { return route.name == name; });
    return found != routes.end() ? &*found : nullptr;
  };
  const std::string own = task == Task::None ? kNone : task_name(task);
  for (const char* modality : {kText, kNone})
    if (const auto found = mappings.find({own, modality}); found != mappings.end())
      return named(found->second);
  for (const char* modality : {kText, kNone})
    if (const auto found = mappings.find({kNone, modality}); found != mappings.end())
      return named(found->second);
  const Route* direct = task == Task::None ? nullptr : named(own);
  if (direct == nullptr) direct = named(kText);
  if (direct != nullptr || task != Task::None || !default_route) return direct;
  return named(*default_route);
}

SentenceRouter read_router(const char* caller, const SentenceModules& modules,
                           const SentenceModule& stage) {
  const Settings config = router_settings(caller, modules.folder / stage.path);
  const Settings structure = config.inside("structure");
  SentenceRouter router;
  for (const std::string& name : names_in_order(config))
    router.routes.push_back({name, stages_in(config, structure, name, stage.path)});
  if (router.routes.empty()) config.refuse("structure", "must have a route");
  const auto route_in = [&](const Settings& source, const std::string& key) {
    const std::string name = source.text(key);
    if (!structure.mentions(name)) source.refuse(key, "must be the name of a route");
    return name;
  };
  const Settings parameters = config.inside_if_given("parameters");
  if (parameters.has("default_route")) {
    router.default_route = route_in(parameters, "default_route");
  } else if (parameters.flag("allow_empty_key", true)) {
    router.default_route = router.routes.front().name;
  }
  if (!parameters.has("route_mappings")) return router;
  const Settings mappings = parameters.inside("route_mappings");
  for (const auto& [key, route] : mappings.object().items())
    router.mappings[tuple_in(mappings, key)] = route_in(mappings, key);
  return router;
}

std::string task_name(Task task) {
  switch (task) {
    case Task::None: break;
    case Task::Query: return "query";
    case Task::Document: return "document";
  }
  return "no task";
}

std::optional<std::vector<SentenceModule>> modules_of(const char* caller,
                                                      const SentenceModules& modules, Task task) {
  std::vector<SentenceModule> all;
  for (const SentenceModule& stage : modules.stages) {
    if (!stage.is_router()) {
      all.push_back(stage);
      continue;
    }
    const SentenceRouter router = read_router(caller, modules, stage);
    const SentenceRouter::Route* const route = router.route(task);
    if (route == nullptr) return std::nullopt;
    all.insert(all.end(), route->stages.begin(), route->stages.end());
  }
  return all;
}

}  // namespace posenc
