#include "posenc/core/fields.h"

#include <string_view>

namespace posenc::fields {

std::string field_name(const char* names, std::size_t index) {
  std::string_view rest = names;
  for (; index > 0; --index) rest.remove_prefix(rest.find(", ") + 2);
  std::string name(rest.substr(0, rest.find(',')));
  if (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

}  // namespace posenc::fields
