import{n as e}from"./components-D5peB1z1.js";var t=e(`outline`,`chevron-left`,`ChevronLeft`,[[`path`,{d:`M15 6l-6 6l6 6`,key:`svg-0`}]]);export{t};
//# sourceMappingURL=IconChevronLeft-Dy-Ap8e2.js.map