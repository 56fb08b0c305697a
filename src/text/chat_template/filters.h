#pragma once

#include <string>

#include "text/chat_template/value.h"

namespace posenc::text::jinja {

/// `value | name(arguments)`.
TemplateValue filtered(const std::string& name, const TemplateValue& value,
                       const TemplateArguments& arguments);
/// `value is name(arguments)`.
bool is_test_true(const std::string& name, const TemplateValue& value,
                  const TemplateArguments& arguments);

}  // namespace posenc::text::jinja
