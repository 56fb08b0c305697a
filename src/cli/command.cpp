#include "cli/command.h"

#include <CLI/Config.hpp>  // defines what each CLI::App refers to
#include <algorithm>

namespace posenc::cli {
namespace {

std::vector<const Command*>& registered() {
  static std::vector<const Command*> all;
  return all;
}

}  // namespace

Command::Command(int order, void (*add)(CLI::App& app)) : order(order), add(add) {
  registered().push_back(this);
}

std::vector<const Command*> commands() {
  std::vector<const Command*> all = registered();
  std::sort(all.begin(), all.end(),
            [](const Command* a, const Command* b) { return a->order < b->order; });
  return all;
}

}  // namespace posenc::cli
