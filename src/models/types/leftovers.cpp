#include "models/types/leftovers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "weights/load/mismatch.h"

namespace posenc {
namespace {

std::string module_path_of(const std::string& name) {
  return name.substr(0, std::min(name.rfind('.'), name.size()));
}

bool is_in_module(const std::string& name, const std::string& module) {
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

void append_names(std::vector<std::string>& to, const std::vector<std::string>& names,
                  const std::string& part) {
  for (const std::string& name : names) to.push_back(part + name);
}

}  // namespace

Leftovers::Leftovers(const io::TensorSource& source, const LoadOptions& options,
                     const std::vector<std::string>& model_types)
    : source_(source), options_(options), prefixes_{options.prefix()} {
  for (const std::string& type : model_types) known_.push_back(&hf::file_names_of(type));
}

void Leftovers::add_read(const std::string& name, const std::string& own) {
  if (!own.empty()) report_.loaded.push_back(own);
  read_.insert(name);
  if (name.find('.') != std::string::npos) computed_.insert(module_path_of(name));
}

void Leftovers::add(const io::LoadPlan& plan, const std::string& part, const NameInFile& in_file) {
  for (const std::string& name : plan.names_read()) add_read(in_file(name));
  const LoadReport& own = plan.report();
  append_names(report_.loaded, own.loaded, part);
  append_names(report_.missing, own.missing, part);
  append_names(report_.cast, own.cast, part);
  for (TableReport table : own.tables) {
    table.name = part + table.name;
    report_.tables.push_back(std::move(table));
  }
}

void Leftovers::add_model(const io::LoadPlan& plan, const std::string& prefix,
                          const std::string& part, const NameInFile& in_file) {
  add(plan, part, in_file);
  prefixes_.insert(prefix);
  for (const std::string& name : plan.names_read()) components_.insert(component_of(in_file(name)));
  for (const std::string& name : plan.report().ignored) dropped_.insert(in_file(name));
}

void Leftovers::add_head(const io::LoadPlan& plan, const std::string& part) {
  add(plan, part);
  for (const std::string& name : plan.names_read()) {
    const auto [head, is_new] = heads_.emplace(component_of(name), module_path_of(name));
    if (is_new) continue;
    while (!is_in_module(name, head->second)) head->second = module_path_of(head->second);
  }
}

// The first component of a name after the longest prefix that it has, with the prefix.
std::string Leftovers::component_of(const std::string& name) const {
  std::size_t begin = 0;
  for (const std::string& prefix : prefixes_) {
    if (name.starts_with(prefix)) begin = std::max(begin, prefix.size());
  }
  return name.substr(0, std::min(name.find('.', begin), name.size()));
}

bool Leftovers::is_ignored(const io::TensorSource::Entry& entry) const {
  return dropped_.count(entry.name) != 0 || hf::is_old_buffer(entry.name, entry.sizes.size()) ||
         std::any_of(known_.begin(), known_.end(),
                     [&](const auto* names) { return names->ignores(entry.name); });
}

bool Leftovers::is_inside(const std::string& name) const {
  const std::string module = module_path_of(name);
  return module != name && prefixes_.count(module + ".") == 0 && computed_.count(module) != 0;
}

// Beside the tensors of another head, which may have the first component of this one's names:
// `cls.predictions` and `cls.seq_relationship`.
bool Leftovers::is_of_own_head(const std::string& name) const {
  const auto head = heads_.find(component_of(name));
  return head != heads_.end() && is_in_module(name, head->second);
}

bool Leftovers::is_of_head(const std::string& name) const {
  const std::string component = component_of(name);
  const std::string last = component.substr(component.rfind('.') + 1);
  return components_.count(component) == 0 && !is_of_own_head(name) &&
         std::any_of(known_.begin(), known_.end(),
                     [&](const auto* names) { return names->has_module(last); });
}

void Leftovers::finish() {
  std::vector<std::string> refused;
  report_.ignored = source_.left_out();
  for (std::size_t i = 0; i < source_.entries().size(); ++i) {
    const auto& entry = source_.entries()[i];
    const std::string& name = entry.name;
    if (!entry.is_tensor || read_.count(name) != 0) continue;
    const std::string in_file = source_.name_in_file(i);
    const bool is_selected = name.starts_with(options_.prefix());
    const bool is_error = is_strict_ || is_inside(name);
    if (!is_selected || is_ignored(entry) || (!is_error && is_of_head(name))) {
      report_.ignored.push_back(in_file);
    } else {
      report_.unexpected.push_back(in_file);
      if (is_error) refused.push_back(io::in_quotes(in_file));
    }
  }
  if (!refused.empty() && !options_.allow_unexpected()) {
    LoadDetails details;
    details.unexpected = report_.unexpected;
    throw WeightsError(WeightsErrorCode::UnexpectedKeys,
                       std::string("has tensors that the model of its config.json does not have") +
                           (is_strict_ ? ":" : " in modules that it has:") +
                           io::lines_of(refused, 2),
                       "allow_unexpected, or --allow-unexpected of a command, leaves them out")
        .with_details(std::move(details));
  }
  if (options_.report() != nullptr) *options_.report() = std::move(report_);
}

}  // namespace posenc
