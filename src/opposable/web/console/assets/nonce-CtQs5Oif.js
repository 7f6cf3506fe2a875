function e(){return document.querySelector(`meta[name="csp-nonce"]`)?.content??``}export{e as t};
//# sourceMappingURL=nonce-CtQs5Oif.js.map