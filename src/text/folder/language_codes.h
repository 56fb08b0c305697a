#pragma once

#include <string>
#include <vector>

/// The languages of translation models, as transformers 5.23 lists them, in the order of their ids.
namespace posenc::text {

const std::vector<std::string>& mbart_codes();
const std::vector<std::string>& mbart50_codes();
const std::vector<std::string>& nllb_codes();

}  // namespace posenc::text
